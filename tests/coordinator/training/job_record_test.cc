#include "coordinator/training/job_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using testing::StatusIs;

class JobRecordTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create("job_record_");
    MU_ASSERT_OK(made.status());
    directory_ = std::make_unique<TempDirectory>(*std::move(made));
  }

  absl::StatusOr<JobRecord> Read(const std::string& text) const {
    MU_RETURN_IF_ERROR(WriteFileAtomic(directory_->path() + "/job.json", text));
    return ReadJobRecord(directory_->path());
  }

  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(JobRecordTest, IsReadAsItWasWritten) {
  JobRecord record{.status = "stopped",
                   .starting = true,
                   .first_epoch = 3,
                   .first_step = 700,
                   .rounds = 40,
                   .checkpoint = "/runs/a/ckpt-00000001",
                   .named_checkpoint = "/runs/a",
                   .vocabularies = {{"country", "00ff"}}};
  record.job.set_name("j");
  MU_ASSERT_OK(WriteJobRecord(directory_->path(), record));
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord read, ReadJobRecord(directory_->path()));
  EXPECT_EQ(read.status, "stopped");
  EXPECT_TRUE(read.starting);
  EXPECT_EQ(read.first_epoch, 3);
  EXPECT_EQ(read.first_step, 700);
  EXPECT_EQ(read.rounds, 40);
  EXPECT_EQ(read.checkpoint, "/runs/a/ckpt-00000001");
  EXPECT_EQ(read.named_checkpoint, "/runs/a");
  EXPECT_THAT(read.vocabularies, ElementsAre(Pair("country", "00ff")));
  EXPECT_EQ(read.job.name(), "j");
}

TEST_F(JobRecordTest, APathThatIsNoTextIsAnError) {
  for (const JobRecord& record :
       {JobRecord{.status = "running", .checkpoint = "/runs/caf\xE9"},
        JobRecord{.status = "running", .named_checkpoint = "/runs/caf\xE9"}}) {
    EXPECT_THAT(WriteJobRecord(directory_->path(), record),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not UTF-8")));
  }
}

TEST_F(JobRecordTest, OfEarlierProgramsHasFewerKeys) {
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord read, Read(R"({"status": "done", "job": {}})"));
  EXPECT_FALSE(read.starting);
  EXPECT_EQ(read.first_epoch, 0);
  EXPECT_EQ(read.first_step, 0);
  EXPECT_EQ(read.rounds, 0);
  EXPECT_EQ(read.checkpoint, "");
  EXPECT_EQ(read.named_checkpoint, "");
  EXPECT_THAT(read.vocabularies, IsEmpty());
}

TEST_F(JobRecordTest, KnowsTheBeginningThatACommandNames) {
  const auto path = [&](const char* name) { return JoinPath(directory_->path(), name); };
  const std::string run = path("run"), folder = path("run/checkpoints"),
                    taken = path("run/checkpoints/ckpt-00000001"),
                    newer = path("run/checkpoints/ckpt-00000002");
  for (const std::string& made : {taken, newer, path("other/checkpoints/ckpt-00000001")})
    MU_ASSERT_OK(MakeDirectories(made));
  ASSERT_EQ(symlink(run.c_str(), path("link").c_str()), 0);
  const JobRecord of_run{.checkpoint = taken, .named_checkpoint = run};
  const JobRecord of_one{.checkpoint = taken, .named_checkpoint = taken};
  const JobRecord earlier{.checkpoint = taken};  // an earlier program's
  for (const bool pruned : {false, true}) {
    if (pruned) MU_ASSERT_OK(RemoveTree(taken));
    for (const JobRecord* record : {&of_run, &earlier}) {
      for (const std::string& same : {run, run + "/", folder, path("link"), taken})
        EXPECT_TRUE(BeganWith(*record, same)) << same << pruned;
    }
    EXPECT_TRUE(BeganWith(of_one, taken)) << pruned;
    for (const std::string& newest : {run, folder, path("link")})
      EXPECT_FALSE(BeganWith(of_one, newest)) << newest << pruned;
    for (const JobRecord* record : {&of_run, &of_one, &earlier}) {
      for (const std::string& other : {newer, path("other"), path("none"), std::string()})
        EXPECT_FALSE(BeganWith(*record, other)) << other << pruned;
    }
  }
  EXPECT_FALSE(BeganWith(JobRecord(), run));
  MU_ASSERT_OK(RemoveTree(run));
  EXPECT_TRUE(BeganWith(of_run, run)) << "nothing of it is needed any more";
}

TEST_F(JobRecordTest, AnEarlierRunsCheckpointIsNotItsOwn) {
  const std::string& run = directory_->path();
  const auto complete = [&](int number, uint64_t epoch) {
    const std::string folder = absl::StrCat(run, "/checkpoints/ckpt-0000000", number);
    MU_ASSERT_OK(MakeDirectories(folder));
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    manifest.set_epoch(epoch);
    MU_ASSERT_OK(WriteManifest(folder, manifest));
  };
  const JobRecord record{.first_epoch = 3};
  EXPECT_FALSE(HasOwnCheckpoint(record, run)) << "there is no folder of them";
  MU_ASSERT_OK(MakeDirectories(run + "/checkpoints/ckpt-00000001"));
  EXPECT_FALSE(HasOwnCheckpoint(record, run)) << "it is not complete";
  complete(1, 2);
  EXPECT_FALSE(HasOwnCheckpoint(record, run));
  EXPECT_TRUE(HasOwnCheckpoint(JobRecord(), run)) << "an earlier program's run";
  for (const uint64_t epoch : {3u, 4u}) {
    complete(2, epoch);
    EXPECT_TRUE(HasOwnCheckpoint(record, run)) << epoch;
  }
  MU_ASSERT_OK(WriteFileAtomic(run + "/checkpoints/ckpt-00000002/manifest.json", "{"));
  EXPECT_TRUE(HasOwnCheckpoint(record, run)) << "nobody knows whose it is";
}

TEST_F(JobRecordTest, VocabulariesAreKnownByTheirTexts) {
  const auto path = [&](const char* name) { return JoinPath(directory_->path(), name); };
  MU_ASSERT_OK(WriteFileAtomic(path("a"), "de\nfr\n"));
  MU_ASSERT_OK(WriteFileAtomic(path("same"), "de\r\nfr"));
  MU_ASSERT_OK(WriteFileAtomic(path("other"), "fr\nde\n"));
  pb::DatasetProto dataset;
  for (const char* name : {"a", "same", "other", "none"}) {
    pb::CsvColumnProto* const column = dataset.mutable_jsonl()->add_columns();
    column->set_name(name);
    column->set_kind(pb::CsvColumnProto::VOCABULARY);
    column->set_vocabulary_file(path(name));
  }
  dataset.mutable_jsonl()->add_columns()->set_name("number");
  const std::map<std::string, std::string> found = FingerprintsOf(dataset);
  ASSERT_THAT(found, ElementsAre(Key("a"), Key("other"), Key("same")));
  EXPECT_EQ(found.at("a"), found.at("same"));
  EXPECT_NE(found.at("a"), found.at("other"));
  const JobRecord there{.vocabularies = {{"a", "1"}, {"b", "2"}, {"gone", "3"}}};
  EXPECT_THAT(OtherVocabularies(there, {.vocabularies = {{"a", "1"}, {"b", "3"}, {"new", "4"}}}),
              ElementsAre("b"));
  EXPECT_THAT(OtherVocabularies(there, JobRecord()), IsEmpty());
}

TEST_F(JobRecordTest, ADamagedOneIsAnErrorWhateverItHolds) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text : {
           std::string("{"),
           std::string("[]"),
           std::string(R"({"status": "done"})"),
           std::string(R"({"status": 1, "job": {}})"),
           std::string(R"({"status": "done", "starting": "yes", "job": {}})"),
           std::string(R"({"status": "done", "job": 1})"),
           std::string(R"({"status": "done", "job": {"no_such_key": 1}})"),
           std::string(R"({"status": "done", "job": {}, "first_epoch": "3"})"),
           std::string(R"({"status": "done", "job": {}, "first_epoch": -3})"),
           std::string(R"({"status": "done", "job": {}, "first_step": -3})"),
           std::string(R"({"status": "done", "job": {}, "rounds": -3})"),
           std::string(R"({"status": "done", "job": {}, "checkpoint": 3})"),
           std::string(R"({"status": "done", "job": {}, "named_checkpoint": 3})"),
           std::string(R"({"status": "done", "job": {}, "vocabularies": 3})"),
           std::string(R"({"status": "done", "job": {}, "vocabularies": {"a": 3}})"),
           R"({"status": "done", "job": {"name": )" + deep + "}}",
       }) {
    EXPECT_THAT(Read(text), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("job.json is damaged")))
        << text.substr(0, 100);
  }
}

// How a model is measured changes nothing of what is trained, so the run may be continued.
TEST(JobFingerprintTest, DoesNotDependOnTheEvaluation) {
  pb::JobProto job, measured;
  measured.mutable_evaluation()->add_metrics("auc");
  measured.mutable_evaluation()->set_group("user");
  EXPECT_EQ(JobFingerprint(job), JobFingerprint(measured));
  EXPECT_EQ(JobDifferences(job, measured), "");
  measured.set_seed(3);
  EXPECT_NE(JobFingerprint(job), JobFingerprint(measured));
}

// Nor how its steps are sent.
TEST(JobFingerprintTest, DoesNotDependOnThePacking) {
  pb::JobProto job, packed;
  packed.mutable_training()->set_steps_per_function("auto");
  packed.mutable_training()->set_max_gap(0.1);
  EXPECT_EQ(JobFingerprint(job), JobFingerprint(packed));
  EXPECT_EQ(JobDifferences(job, packed), "");
}

// A run that a bad record has ended goes on without such records.
TEST(JobFingerprintTest, DoesNotDependOnWhatABadRecordDoes) {
  pb::JobProto fails, skips;
  fails.mutable_data()->mutable_train()->set_on_bad_record("fail");
  skips.mutable_data()->mutable_train()->set_on_bad_record("skip");
  EXPECT_EQ(JobFingerprint(fails), JobFingerprint(skips));
  EXPECT_EQ(JobDifferences(fails, skips), "");
  skips.mutable_data()->mutable_train()->set_format("csv");
  EXPECT_NE(JobFingerprint(fails), JobFingerprint(skips));
}

// One is what a job without the key has; with more, functions are others.
TEST(JobFingerprintTest, DependsOnMicroBatches) {
  pb::JobProto job, written;
  written.mutable_training()->set_micro_batches(1);
  EXPECT_EQ(JobFingerprint(job), JobFingerprint(written));
  written.mutable_training()->set_micro_batches(2);
  EXPECT_NE(JobFingerprint(job), JobFingerprint(written));
  EXPECT_NE(JobDifferences(job, written), "");
}

}  // namespace
}  // namespace mu
