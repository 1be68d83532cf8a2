#include "coordinator/training/trained_columns.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/run_status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::google::protobuf::TextFormat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::StatusIs;

pb::DatasetProto Csv(const std::string& name, const std::string& columns) {
  pb::DatasetProto dataset;
  dataset.set_name(name);
  EXPECT_TRUE(TextFormat::ParseFromString(columns, dataset.mutable_csv())) << columns;
  return dataset;
}

// Of one column x that was trained as `trained` and is now `now`.
std::vector<std::string> Compare(const std::string& trained, const std::string& now) {
  return CompareColumns({.dataset = Csv("data.train", "columns { name: 'x' " + trained + "}")},
                        Csv("data.eval", "columns { name: 'x' " + now + "}"), {}, {"x"});
}

TEST(CompareColumnsTest, IdsThatMeanSomethingElse) {
  const char* const hash = "kind: HASH buckets: 10";
  EXPECT_THAT(Compare(hash, hash), IsEmpty());
  EXPECT_THAT(
      Compare(hash, "kind: HASH buckets: 5 seed: 3"),
      ElementsAre("data.eval.columns[0]: column x is hash into 5 with seed 3, in data.train hash "
                  "into 10: its values would be other ids than those that were trained; write it "
                  "as it is there"));
  for (const char* other :
       {"kind: ID", "kind: HASH buckets: 10 seed: 0", "kind: CROSS of: 'a' of: 'b' buckets: 10",
        "kind: CLASS classes: 'a' classes: 'b'", "kind: BUCKET boundaries: 1 boundaries: 2",
        "kind: VOCABULARY vocabulary_file: 'a' oov_buckets: 1"}) {
    EXPECT_THAT(Compare(other, other), IsEmpty()) << other;
    EXPECT_THAT(Compare(hash, other), ElementsAre(HasSubstr("other ids"))) << other;
  }
  EXPECT_THAT(
      Compare("kind: CROSS of: 'a' of: 'b' buckets: 10", "kind: CROSS of: 'b' of: 'a' buckets: 10"),
      ElementsAre(HasSubstr("cross of b and a into 10")));
  EXPECT_THAT(Compare("kind: BUCKET boundaries: 1700000049", "kind: BUCKET boundaries: 1700000050"),
              ElementsAre(HasSubstr("bucket of 1700000050, in data.train bucket of 1700000049")));
  EXPECT_THAT(Compare("kind: CLASS classes: 'a' classes: 'b'", "kind: CLASS classes: 'b'"),
              ElementsAre(HasSubstr("class of b, in data.train class of a, b")));
}

TEST(CompareColumnsTest, NumbersThatAreMadeInAnotherWay) {
  const char* const trained = "kind: NUMBER mean: 38.5 stddev: 14 missing_value: 2";
  EXPECT_THAT(Compare(trained, trained), IsEmpty());
  EXPECT_THAT(
      Compare(trained, "kind: NUMBER missing_value: 2"),
      ElementsAre("data.eval.columns[0]: column x has `mean` 0 instead of 38.5, `stddev` 1 instead "
                  "of 14 as in data.train: its values would be others than those that were "
                  "trained; write it as it is there"));
  EXPECT_THAT(Compare(trained, "kind: NUMBER mean: 38.5 stddev: 14"),
              ElementsAre(HasSubstr("has `missing_value` 0 instead of 2 as")));
  EXPECT_THAT(Compare("kind: NUMBER mean: 0.1", "kind: NUMBER mean: 0.10000000000000002"),
              ElementsAre(HasSubstr("`mean` 0.10000000000000002 instead of 0.1 as")));
  EXPECT_THAT(Compare("kind: NUMBER mean: 1700000000", "kind: NUMBER mean: 1700000000.25"),
              ElementsAre(HasSubstr("`mean` 1700000000.25 instead of 1700000000 as")));
  EXPECT_THAT(Compare("kind: NUMBER missing_value: 0.1", "kind: NUMBER missing_value: 0.1000001"),
              ElementsAre(HasSubstr("`missing_value` 0.100000098 instead of 0.100000001")));
  // Written or not, it is the same.
  EXPECT_THAT(Compare("kind: NUMBER", "kind: NUMBER mean: 0 stddev: 1 missing_value: 0"),
              IsEmpty());
  // Where none may be missing, nothing stands for it.
  EXPECT_THAT(Compare("kind: NUMBER required: true", "kind: NUMBER missing_value: 3"), IsEmpty());
}

TEST(CompareColumnsTest, WhatStandsForMissingIdsAndFillsSequences) {
  EXPECT_THAT(Compare("kind: ID missing_id: 1", "kind: ID missing_id: 2"),
              ElementsAre(HasSubstr("has `missing_id` 2 instead of 1 as in data.train")));
  EXPECT_THAT(Compare("kind: ID", "kind: ID missing_id: 2"), IsEmpty());
  EXPECT_THAT(Compare("kind: ID missing_id: 1 required: true", "kind: ID missing_id: 2"),
              IsEmpty());
  EXPECT_THAT(Compare("kind: BUCKET boundaries: 1", "kind: BUCKET boundaries: 1 missing_id: 0"),
              ElementsAre(HasSubstr("`missing_id` 0 instead of 2 as")));
  EXPECT_THAT(
      Compare("kind: VOCABULARY oov_buckets: 1", "kind: VOCABULARY oov_buckets: 1 missing_id: 0"),
      ElementsAre(HasSubstr("`missing_id` 0 instead of the number of texts as")));
  EXPECT_THAT(Compare("kind: ID list: true length: 3 padding: 0",
                      "kind: ID list: true length: 3 padding: 9 truncate: TRUNCATE_BEGIN"),
              ElementsAre(HasSubstr("`padding` 9 instead of 0, `truncate` begin instead of end")));
  EXPECT_THAT(Compare("kind: NUMBER separator: ' ' length: 3 required: true",
                      "kind: NUMBER separator: ' ' length: 3 required: true missing_value: 1"),
              ElementsAre(HasSubstr("`missing_value` 1 instead of 0")));
}

TEST(CompareColumnsTest, VocabulariesByTheirTexts) {
  const auto column = [](const std::string& file, int more) {
    return Csv("data.eval", absl::StrCat("columns { name: 'x' kind: VOCABULARY vocabulary_file: '",
                                         file, "' oov_buckets: ", more, "}"));
  };
  const auto compare = [&](const std::string& texts, const pb::DatasetProto& now) {
    return CompareColumns({.dataset = column("/a", 1), .vocabularies = {{"x", "1f"}}}, now,
                          {{"x", texts}}, {"x"});
  };
  EXPECT_THAT(compare("1f", column("/a", 1)), IsEmpty());
  EXPECT_THAT(compare("1f", column("/moved/a", 1)), IsEmpty());
  EXPECT_THAT(
      compare("1f", column("/a", 2)),
      ElementsAre(HasSubstr("is vocabulary /a with 2 more, in data.train vocabulary /a with "
                            "1 more: ")));
  EXPECT_THAT(compare("2e", column("/a", 1)),
              ElementsAre(HasSubstr("data.eval.columns[0]: column x is vocabulary /a, whose texts "
                                    "are not those that /a had in data.train: ")));
  // Where the texts are not known, the paths are.
  EXPECT_THAT(CompareColumns({.dataset = column("/a", 1)}, column("/b", 1), {{"x", "1f"}}, {"x"}),
              ElementsAre(HasSubstr("vocabulary /b with 1 more, in data.train vocabulary /a")));
}

TEST(CompareColumnsTest, ArraysThatAreScaledInAnotherWay) {
  const auto arrays = [](const std::string& container, const std::string& scale) {
    pb::DatasetProto dataset;
    dataset.set_name("data.eval");
    EXPECT_TRUE(TextFormat::ParseFromString(
        "container: " + container + " columns { name: 'x' dtype: FLOAT32 " + scale + "}",
        dataset.mutable_arrays()));
    return dataset;
  };
  const TrainedColumns trained{.dataset = arrays("NPY", "scale: 0.5")};
  EXPECT_THAT(CompareColumns(trained, arrays("NPY", "scale: 0.5"), {}, {"x"}), IsEmpty());
  EXPECT_THAT(CompareColumns(trained, arrays("NPY", ""), {}, {"x"}),
              ElementsAre(HasSubstr("data.eval.columns[0].scale: column x has `scale` 1 instead of "
                                    "0.5 as in data.train")));
  EXPECT_THAT(CompareColumns(trained, arrays("NPY", ""), {}, {"y"}), IsEmpty());
  EXPECT_THAT(CompareColumns(trained, arrays("IDX", ""), {}, {"x"}), IsEmpty());
  EXPECT_THAT(CompareColumns({.dataset = arrays("IDX", "")}, arrays("IDX", "scale: 2"), {}, {"x"}),
              ElementsAre(HasSubstr("data.eval.scale: column x has `scale` 2")));
}

TEST(CompareColumnsTest, OnlyThoseThatTheModelReads) {
  const auto columns = [](int buckets) {
    return absl::StrCat(
        "columns { name: 'n' kind: NUMBER } columns { name: 'x' kind: HASH "
        "buckets: ",
        buckets, "} columns { name: 'y' kind: HASH buckets: ", buckets, "}");
  };
  const TrainedColumns trained{.dataset = Csv("data.train", columns(10))};
  const pb::DatasetProto now = Csv("data.predict", columns(5));
  EXPECT_THAT(CompareColumns(trained, now, {}, {"n", "y"}),
              ElementsAre(HasSubstr("data.predict.columns[2]: column y is")));
  EXPECT_THAT(CompareColumns(trained, now, {}, {"n"}), IsEmpty());
}

// The model reads `c` alone, a cross of x and y.
std::vector<std::string> CompareCrossed(const std::string& trained, const std::string& now,
                                        const std::set<std::string>& used = {"c"}) {
  const auto columns = [](const std::string& x) {
    return absl::StrCat("columns { name: 'x' ", x,
                        "} columns { name: 'y' kind: HASH buckets: 10 } columns { name: 'c' kind: "
                        "CROSS of: 'x' of: 'y' buckets: 100 }");
  };
  return CompareColumns({.dataset = Csv("data.train", columns(trained))},
                        Csv("data.predict", columns(now)), {}, used);
}

TEST(CompareColumnsTest, BucketsThatACrossTakes) {
  const char* const trained = "kind: BUCKET boundaries: 30 boundaries: 50";
  const char* const now = "kind: BUCKET boundaries: 20 boundaries: 40";
  EXPECT_THAT(CompareCrossed(trained, trained), IsEmpty());
  const std::string error =
      "data.predict.columns[0]: column x is bucket of 20, 40, in data.train bucket of 30, 50: its "
      "values would be other ids than those that were trained; write it as it is there";
  EXPECT_THAT(CompareCrossed(trained, now), ElementsAre(error));
  EXPECT_THAT(CompareCrossed(trained, now, {"c", "x"}), ElementsAre(error));
  EXPECT_THAT(CompareCrossed(trained, now, {"y"}), IsEmpty());
  // A missing bucket is none to a cross, whatever id stands for it in the column.
  EXPECT_THAT(CompareCrossed(trained, absl::StrCat(trained, " missing_id: 0")), IsEmpty());
}

TEST(CompareColumnsTest, KindsThatACrossTakes) {
  const char* const bucket = "kind: BUCKET boundaries: 30";
  for (const auto& [other, name] :
       {std::pair("kind: NUMBER", "number"), std::pair("kind: HASH buckets: 7", "hash into 7"),
        std::pair("kind: LABEL positive: '1'", "label"), std::pair("kind: ID", "id")}) {
    EXPECT_THAT(CompareCrossed(bucket, other),
                ElementsAre(HasSubstr(
                    absl::StrCat("column x is ", name, ", in data.train bucket of 30: "))));
    EXPECT_THAT(CompareCrossed(other, bucket),
                ElementsAre(HasSubstr(
                    absl::StrCat("column x is bucket of 30, in data.train ", name, ": "))));
    // Their text is the same.
    EXPECT_THAT(CompareCrossed("kind: HASH buckets: 10", other), IsEmpty());
    EXPECT_THAT(CompareCrossed(other, "kind: NUMBER mean: 3"), IsEmpty());
  }
}

TEST(ComparePositivesTest, TellsOfListsThatShareNoText) {
  const auto notes = [](const std::string& trained, const std::string& now) {
    return ComparePositives(
        {.dataset = Csv("data.train",
                        "columns { name: 'a' } columns { name: 'x' kind: LABEL " + trained + "}")},
        Csv("data.eval", "columns { name: 'x' kind: LABEL " + now + "}"), {"a", "x"});
  };
  EXPECT_THAT(notes("positive: '>50K'", "positive: '<=50K' positive: 'low'"),
              ElementsAre(AllOf(HasSubstr("data.eval.columns[0].positive: column x is 1 for <=50K, "
                                          "low, in data.train for >50K: "),
                                HasSubstr("inverted"))));
  EXPECT_THAT(notes("positive: '>50K' positive: '>50K.'", "positive: '>50K.'"), IsEmpty());
  pb::DatasetProto now = Csv("data.eval", "columns { name: 'x' kind: LABEL positive: 'no' }");
  EXPECT_THAT(ComparePositives(
                  {.dataset = Csv("data.train", "columns { name: 'x' kind: LABEL positive: 'y' }")},
                  now, {"a"}),
              IsEmpty());
}

TEST(ComparePositivesTest, OfLibsvm) {
  const auto libsvm = [](const std::string& positive) {
    pb::DatasetProto dataset;
    dataset.set_name("data.eval");
    dataset.mutable_libsvm()->add_positive(positive);
    return dataset;
  };
  EXPECT_THAT(ComparePositives({.dataset = libsvm("+1")}, libsvm("-1"), {"label"}),
              ElementsAre(HasSubstr("data.eval.positive: column label is 1 for -1, in")));
  EXPECT_THAT(ComparePositives({.dataset = libsvm("+1")}, libsvm("+1"), {"label"}), IsEmpty());
}

class RecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create("trained_columns_");
    MU_ASSERT_OK(made.status());
    directory_ = std::make_unique<TempDirectory>(*std::move(made));
    JobRecord record{.status = "done", .first_epoch = 3};
    ASSERT_TRUE(TextFormat::ParseFromString(
        "data { train { format: 'csv' columns { name: 'x' kind: 'hash' buckets: 7 } } }",
        &record.job));
    MU_ASSERT_OK(WriteJobRecord(run(), record));
  }
  std::string run() const { return directory_->path(); }
  std::string Checkpoint(uint64_t epoch) const {
    const std::string folder = JoinPath(run(), "checkpoints/ckpt-00000001");
    EXPECT_THAT(MakeDirectories(folder), testing::IsOk());
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    manifest.set_epoch(epoch);
    EXPECT_THAT(WriteManifest(folder, manifest), testing::IsOk());
    return folder;
  }
  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(RecordTest, SaysWhatWasTrained) {
  for (const auto& trained : {TrainedColumnsOfCheckpoint(Checkpoint(3)), TrainedColumnsOfRun(run()),
                              TrainedColumnsOfRun(JoinPath(run(), "checkpoints"))}) {
    MU_ASSERT_OK(trained.status());
    EXPECT_EQ(trained->where, "data.train of " + JoinPath(run(), "job.json"));
    EXPECT_THAT(
        CompareColumns(*trained, Csv("data.eval", "columns { name: 'x' kind: ID }"), {}, {"x"}),
        ElementsAre(HasSubstr("hash into 7")));
  }
}

TEST_F(RecordTest, OfAnotherRunSaysNothing) {
  EXPECT_THAT(TrainedColumnsOfCheckpoint(Checkpoint(2)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("older than the run")));
  MU_ASSERT_OK(RemoveFile(JoinPath(run(), "job.json")));
  EXPECT_TRUE(absl::IsNotFound(TrainedColumnsOfCheckpoint(Checkpoint(3)).status()));
}

// Else the job would be compared with itself.
TEST_F(RecordTest, ThatCannotBeReadIsNotOneThatIsMissing) {
  const std::string record = JoinPath(run(), "job.json"), checkpoint = Checkpoint(3);
  MU_ASSERT_OK(WriteFileAtomic(record, "{\"status\": \"do"));
  for (const std::string& named : {checkpoint, checkpoint + "/"}) {
    EXPECT_THAT(TrainedColumnsOfCheckpoint(named),
                StatusIs(absl::StatusCode::kDataLoss,
                         HasSubstr(record + " is damaged: it is not known what " + checkpoint +
                                   " was trained with; copy the checkpoint's folder to a place "
                                   "outside of " +
                                   run() + ", ")));
  }
  MU_ASSERT_OK(RemoveFile(record));
  MU_ASSERT_OK(MakeDirectories(record));
  EXPECT_THAT(TrainedColumnsOfCheckpoint(checkpoint),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot read " + record)));
}

// A file of this name may be the user's, and who copies a checkpoint knows what it is of.
TEST_F(RecordTest, BesideACopyIsBelievedIfItIsARuns) {
  const std::string copy = JoinPath(run(), "copies/ckpt-00000001");
  MU_ASSERT_OK(MakeDirectories(DirectoryOf(copy)));
  MU_ASSERT_OK(RenameFile(Checkpoint(3), copy));
  MU_EXPECT_OK(TrainedColumnsOfCheckpoint(copy));
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(run(), "job.json"), "{\"name\": \"small\"}"));
  EXPECT_THAT(TrainedColumnsOfCheckpoint(copy),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("lies alone")));
}

// Its trainer leaves the record of the job that has trained there before.
TEST_F(RecordTest, SaysNothingOfAProgramsRun) {
  MU_ASSERT_OK(MarkRun(run(), RunStatus::kRunning));
  for (const auto& trained : {TrainedColumnsOfCheckpoint(Checkpoint(3)), TrainedColumnsOfRun(run()),
                              TrainedColumnsOfRun(JoinPath(run(), "checkpoints"))}) {
    EXPECT_THAT(trained, StatusIs(absl::StatusCode::kNotFound, HasSubstr("a program's run")));
  }
  MU_ASSERT_OK(UnmarkRun(run()));
  MU_EXPECT_OK(TrainedColumnsOfRun(run()));
}

}  // namespace
}  // namespace mu
