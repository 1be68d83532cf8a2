#include "coordinator/training/trained_model.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

using ::google::protobuf::TextFormat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

pb::ModelProto Model(const std::string& text) {
  pb::ModelProto model;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

ModelDifferences Compare(const std::string& trained, const std::string& now) {
  return CompareModels({.model = Model(trained), .record = "run/job.json"}, Model(now));
}

TEST(CompareModelsTest, NamesTheKeyAndBothValues) {
  EXPECT_THAT(Compare("mlp { features { column: 'a' } features { column: 'b' stddev: 2 } }",
                      "mlp { features { column: 'a' } features { column: 'b' stddev: 0.1 } }")
                  .problems,
              ElementsAre("model.mlp.features[1].stddev: is 0.1, in run/job.json 2: the values "
                          "were trained for another function; write it as it is there"));
  EXPECT_THAT(Compare("mlp { features { column: 'a' } features { column: 'b' } }",
                      "mlp { features { column: 'b' } features { column: 'a' } }")
                  .problems,
              ElementsAre(HasSubstr("features[0].column: is b, in run/job.json a: "),
                          HasSubstr("features[1].column: is a, in run/job.json b: ")));
  EXPECT_THAT(
      Compare("sasrec {}", "matrix_factorization {}").problems,
      ElementsAre(HasSubstr("model: is matrix_factorization, in run/job.json sasrec: the values")));
  // Two numbers that differ do not look equal.
  EXPECT_THAT(Compare("matrix_factorization { global_mean: 3.5000002 }",
                      "matrix_factorization { global_mean: 3.5 }")
                  .problems,
              ElementsAre(HasSubstr("global_mean: is 3.5, in run/job.json 3.50000024: ")));
}

// Of each what shapes do not tell.
TEST(CompareModelsTest, EachModelHasKeysThatDecide) {
  const struct {
    const char *model, *trained, *now, *key;
  } changes[] = {
      {"logistic_regression", "features { column: 'a' }", "features { column: 'a' mean: 1 }",
       "features[0].mean"},
      {"deepfm", "features { column: 'a' kind: 'list' rows: 3 }",
       "features { column: 'a' kind: 'weighted_list' rows: 3 }", "features[0].kind"},
      {"cnn", "image_column: 'a'", "image_column: 'b'", "image_column"},
      {"resnet", "", "blocks: 2", "blocks"},
      {"two_tower", "temperature: 0.2", "", "temperature"},
      {"two_tower", "item { column: 'a' stddev: 2 }", "item { column: 'a' }", "item[0].stddev"},
      {"din", "length: 50", "length: 20", "length"},
      {"sasrec", "", "heads: 2", "heads"},
      {"mmoe", "features { column: 'a' mean: 2 }", "features { column: 'a' }", "features[0].mean"},
      {"matrix_factorization", "user_column: 'a' item_column: 'b'",
       "user_column: 'c' item_column: 'b'", "user_column"},
      {"dlrm", "top_mlp: 8 top_mlp: 1", "top_mlp: 4 top_mlp: 1", "top_mlp"},
      {"nfm", "features { column: 'a' }", "features { column: 'a' } features { column: 'b' }",
       "features"},
  };
  for (const auto& [model, trained, now, key] : changes) {
    const std::string before = absl::StrCat(model, " { ", trained, " }"),
                      after = absl::StrCat(model, " { ", now, " }");
    EXPECT_THAT(Compare(before, after).problems,
                ElementsAre(StartsWith(absl::StrCat("model.", model, ".", key, ": is "))));
    EXPECT_THAT(Compare(before, before).problems, IsEmpty());
  }
  EXPECT_THAT(Compare("two_tower {}", "two_tower { temperature: 0.5 }").problems,
              ElementsAre(HasSubstr("is 0.5, in run/job.json 0.1: ")));
  EXPECT_THAT(Compare("dlrm { top_mlp: 8 top_mlp: 1 }", "dlrm { top_mlp: 1 }").problems,
              ElementsAre(HasSubstr("is [1], in run/job.json [8, 1]: ")));
}

// With `wide_deep` of ids alone even all names and shapes are the same.
TEST(CompareModelsTest, AnotherModelOfTheSameValues) {
  EXPECT_THAT(Compare("wide_deep { hidden: 4 }", "deepfm { hidden: 4 }").problems,
              ElementsAre(StartsWith("model: is deepfm, in run/job.json wide_deep: ")));
}

TEST(CompareModelsTest, WhatIsLeftOutIsTheDefault) {
  const char* const same[][2] = {
      {"mlp { features { column: 'a' } }",
       "mlp { features { column: 'a' kind: 'number' mean: 0 stddev: 1 } embedding_dim: 16 }"},
      {"dcn_v2 {}", "dcn_v2 { cross_layers: 3 }"},
      {"cnn {}", "cnn { channels: 1 kernel: 3 }"},
      {"resnet {}", "resnet { channels: 1 blocks: 1 }"},
      {"two_tower {}", "two_tower { embedding_dim: 32 temperature: 0.1 }"},
      {"two_tower { user { column: 'a' } }",
       "two_tower { user { column: 'a' kind: 'number' mean: 0 stddev: 1 } }"},
      {"two_tower { item { column: 'a' } }",
       "two_tower { item { column: 'a' kind: 'number' mean: 0 stddev: 1 } }"},
      {"din {}", "din { embedding_dim: 16 }"},
      {"sasrec {}", "sasrec { embedding_dim: 48 blocks: 2 heads: 1 }"},
      {"mmoe {}", "mmoe { embedding_dim: 16 experts: 4 }"},
      {"matrix_factorization {}", "matrix_factorization { global_mean: 0 }"},
  };
  for (const auto& [left_out, written] : same) {
    EXPECT_THAT(Compare(left_out, written).problems, IsEmpty()) << written;
    EXPECT_THAT(Compare(written, left_out).problems, IsEmpty()) << written;
  }
}

TEST(CompareModelsTest, WhatOnlyTrainingReadsMayDiffer) {
  const char* const changes[][2] = {
      {"matrix_factorization { rating_column: 'a' }",
       "matrix_factorization { rating_column: 'b' l2: 0.1 }"},
      {"mlp { label_column: 'a' product: 'auto' }", "mlp { label_column: 'b' product: 'worker' }"},
      {"cnn { dropout: 0.5 label_column: 'a' }", "cnn { label_column: 'b' }"},
      {"resnet { label_column: 'a' }", "resnet { label_column: 'b' }"},
      {"two_tower { frequency_column: 'a' label_column: 'a' }",
       "two_tower { negatives: 'sampled' sampled: 7 label_column: 'b' }"},
      {"din { label_column: 'a' }", "din { label_column: 'b' }"},
      {"sasrec { dropout: 0.5 item_column: 'a' label_column: 'a' }",
       "sasrec { item_column: 'b' label_column: 'b' }"},
      {"mmoe { tasks { name: 'x' label_column: 'a' } tasks { name: 'y' } }",
       "mmoe { tasks { name: 'y' } tasks { name: 'x' label_column: 'b' weight: 3 } }"},
  };
  for (const auto& [trained, now] : changes)
    EXPECT_THAT(Compare(trained, now).problems, IsEmpty()) << now;
}

// Only its own code knows what an option decides.
TEST(CompareModelsTest, OptionsOfAModelOfTheUsersAreNotes) {
  const auto own = [](const std::string& json) {
    return absl::StrCat("custom { name: 'mine' json: '", json, "' }");
  };
  const ModelDifferences found =
      Compare(own(R"({"dim": 8, "scale": 2, "gone": true})"), own(R"({"scale": 0.5, "dim": 8})"));
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.notes,
              ElementsAre(HasSubstr("model.mine.gone: is not given, in run/job.json true: unless"),
                          HasSubstr("model.mine.scale: is 0.5, in run/job.json 2: unless")));
  EXPECT_THAT(Compare(own("{}"), "custom { name: 'other' json: '{}' }").problems,
              ElementsAre(AllOf(HasSubstr("model: is other"), HasSubstr("mine"))));
}

TEST(CompareModelsTest, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_THAT(CompareModels({}, Model("sasrec { heads: 2 }")).problems, IsEmpty());
  EXPECT_THAT(Compare("sasrec {}", "").problems, IsEmpty());
}

}  // namespace
}  // namespace mu
