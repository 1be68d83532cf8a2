// The table is whole: it has every kind and every setting of the protobuf, and what is checked,
// filled in and laid out follows from it.
#include "common/optimizer/optimizer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/optimizer/optimizer_settings.h"
#include "google/protobuf/util/json_util.h"
#include "tests/testing/example_optimizers.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using muster::OptimizerProto;
using Range = OptimizerKey::Range;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

OptimizerProto FromJson(const std::string& json) {
  OptimizerProto proto;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &proto).ok()) << json;
  return proto;
}

TEST(OptimizerTable, HasEveryKindAndEverySetting) {
  const auto* oneof = OptimizerProto::descriptor()->oneof_decl(0);
  ASSERT_EQ(static_cast<int>(AllOptimizers().size()), oneof->field_count());
  for (int i = 0; i < oneof->field_count(); ++i) {
    const OptimizerKind& kind = AllOptimizers()[i];
    EXPECT_EQ(kind.name, oneof->field(i)->name());
    EXPECT_EQ(static_cast<int>(kind.kind), oneof->field(i)->number());
    EXPECT_EQ(FindOptimizer(kind.kind), &kind);
    EXPECT_THAT(kind.formula, Not(IsEmpty())) << kind.name;
    const auto* message = oneof->field(i)->message_type();
    std::set<std::string> fields, keys;
    for (int f = 0; f < message->field_count(); ++f) fields.insert(message->field(f)->name());
    for (const OptimizerKey& key : kind.keys) {
      EXPECT_TRUE(keys.insert(key.name).second) << kind.name << "." << key.name;
      EXPECT_STRNE(key.meaning, "") << kind.name << "." << key.name;
      EXPECT_EQ(key.range == Range::kChoice, !key.choices.empty()) << kind.name << "." << key.name;
    }
    EXPECT_EQ(keys, fields) << kind.name;
    EXPECT_STREQ(kind.keys[0].name, "learning_rate");
  }
  EXPECT_EQ(FindOptimizer(OptimizerProto::KIND_NOT_SET), nullptr);
}

TEST(OptimizerTable, DefaultsAreRight) {
  for (const OptimizerKind& kind : AllOptimizers()) {
    const OptimizerProto given =
        FromJson(absl::StrCat("{\"", kind.name, "\": {\"learning_rate\": 0.5}}"));
    EXPECT_THAT(ProblemsOf(given), IsEmpty()) << kind.name;
    const OptimizerProto full = WithDefaults(given);
    EXPECT_EQ(WithDefaults(full).SerializeAsString(), full.SerializeAsString()) << kind.name;
    EXPECT_EQ(SlotsOf(given, 4).size(), SlotsOf(full, 4).size());
  }
  EXPECT_EQ(WithDefaults(FromJson("{\"adam\": {\"beta1\": 0}}")).adam().beta1(), 0.0f);
  EXPECT_EQ(WithDefaults(FromJson("{\"adam\": {}}")).adam().beta1(), 0.9f);
  EXPECT_EQ(WithDefaults(FromJson("{\"adagrad\": {}}")).adagrad().epsilon(), 1e-10f);
}

TEST(OptimizerTable, EveryKeyRefusesWhatIsOutOfItsRange) {
  for (const OptimizerKind& kind : AllOptimizers()) {
    for (const OptimizerKey& key : kind.keys) {
      std::vector<std::string> bad = {"-0.5", "\"NaN\"", "\"Infinity\"", "1e-40"};
      if (key.range == Range::kBelowOne) bad.push_back("1.0");
      if (key.range == Range::kChoice) bad = {"\"other\""};
      if (key.range == Range::kFlag) bad.clear();
      for (const std::string& value : bad) {
        const bool is_rate = std::string("learning_rate") == key.name;
        const OptimizerProto proto = FromJson(
            absl::StrCat("{\"", kind.name, "\": {", is_rate ? "" : "\"learning_rate\": 0.5, ", "\"",
                         key.name, "\": ", value, "}}"));
        const auto problems = ProblemsOf(proto);
        ASSERT_THAT(problems, SizeIs(1)) << kind.name << "." << key.name << " " << value;
        EXPECT_EQ(problems[0].key, absl::StrCat(kind.name, ".", key.name));
        EXPECT_NE(problems[0].remedy, "");
        EXPECT_THAT(CheckOptimizer(proto),
                    testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr(absl::StrCat(kind.name, ": ", key.name))));
      }
    }
  }
  EXPECT_THAT(CheckOptimizer(FromJson("{\"adam\": {\"learning_rate\": 1, \"beta2\": 1}}")),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                "adam: beta2 must be from 0 to below 1, got 1"));
}

TEST(OptimizerTable, SettingsThatDoNotGoTogetherAreRefused) {
  const auto nesterov =
      ProblemsOf(FromJson("{\"sgd\": {\"learning_rate\": 1, \"nesterov\": true}}"));
  ASSERT_THAT(nesterov, SizeIs(1));
  EXPECT_EQ(nesterov[0].key, "sgd");
  EXPECT_THAT(CheckOptimizer(FromJson("{\"ftrl\": {\"learning_rate\": 1, \"beta\": 0}}")),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 / 0")));
}

TEST(OptimizerTable, WhatANewerProgramSetsIsRefused) {
  OptimizerProto known = FromJson("{\"adam\": {\"learning_rate\": 1}}");
  MU_EXPECT_OK(CheckOptimizer(known));
  known.mutable_adam()
      ->GetReflection()
      ->MutableUnknownFields(known.mutable_adam())
      ->AddVarint(99, 1);
  EXPECT_THAT(CheckOptimizer(known),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not know")));
  OptimizerProto unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(99, "");
  EXPECT_THAT(CheckOptimizer(unknown),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not know")));
  MU_EXPECT_OK(CheckOptimizer({}));
}

TEST(OptimizerTable, SlotsFollowFromTheSettings) {
  const auto names = [](const std::string& json) { return DescribeOptimizer(FromJson(json)); };
  EXPECT_EQ(DescribeOptimizer({}), "no optimizer");
  EXPECT_EQ(names("{\"sgd\": {}}"), "sgd");
  EXPECT_EQ(names("{\"sgd\": {\"momentum\": 0.9}}"), "sgd with slots momentum");
  EXPECT_EQ(names("{\"adagrad\": {}}"), "adagrad with slots accumulator");
  EXPECT_EQ(names("{\"rmsprop\": {\"momentum\": 0.9, \"centered\": true}}"),
            "rmsprop with slots square_average, average, momentum");
  const auto slots = SlotsOf(FromJson("{\"adam\": {\"bias_correction\": \"row\"}}"), 7);
  ASSERT_THAT(slots, SizeIs(3));
  EXPECT_EQ(slots[0].width, 7u);
  EXPECT_EQ(slots[2].name, "count");
  EXPECT_EQ(slots[2].width, 1u);
  EXPECT_EQ(SlotFloats(slots), 15u);
  EXPECT_EQ(
      SlotsOf(FromJson("{\"rowwise_adagrad\": {\"initial_accumulator\": 0.5}}"), 7)[0].initial,
      0.5f);
  // Rows without values need nothing, however many there are.
  for (const auto& example : testing::ExampleOptimizers())
    EXPECT_EQ(SlotFloats(SlotsOf(example.proto, 0)), 0u) << example.name;
}

TEST(OptimizerTable, LearningRatesAreScaled) {
  for (const auto& example : testing::ExampleOptimizers()) {
    const OptimizerProto scaled = ScaleLearningRate(example.proto, 0.5f);
    EXPECT_EQ(ScaleLearningRate(scaled, 2).SerializeAsString(), example.proto.SerializeAsString())
        << example.name;
    EXPECT_NE(scaled.SerializeAsString(), example.proto.SerializeAsString()) << example.name;
  }
}

}  // namespace
}  // namespace mu
