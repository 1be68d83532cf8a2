#include "coordinator/training/job_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
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
                   .first_epoch = 3,
                   .first_step = 700,
                   .checkpoint = "/runs/a/ckpt-00000001"};
  record.job.set_name("j");
  MU_ASSERT_OK(WriteJobRecord(directory_->path(), record));
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord read, ReadJobRecord(directory_->path()));
  EXPECT_EQ(read.status, "stopped");
  EXPECT_EQ(read.first_epoch, 3);
  EXPECT_EQ(read.first_step, 700);
  EXPECT_EQ(read.checkpoint, "/runs/a/ckpt-00000001");
  EXPECT_EQ(read.job.name(), "j");
}

TEST_F(JobRecordTest, APathThatIsNoTextIsAnError) {
  const JobRecord record{.status = "running", .checkpoint = "/runs/caf\xE9"};
  EXPECT_THAT(WriteJobRecord(directory_->path(), record),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not UTF-8")));
}

TEST_F(JobRecordTest, OfEarlierProgramsHasFewerKeys) {
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord read, Read(R"({"status": "done", "job": {}})"));
  EXPECT_EQ(read.first_epoch, 0);
  EXPECT_EQ(read.first_step, 0);
  EXPECT_EQ(read.checkpoint, "");
}

TEST_F(JobRecordTest, ADamagedOneIsAnErrorWhateverItHolds) {
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  for (const std::string& text : {
           std::string("{"),
           std::string("[]"),
           std::string(R"({"status": "done"})"),
           std::string(R"({"status": 1, "job": {}})"),
           std::string(R"({"status": "done", "job": 1})"),
           std::string(R"({"status": "done", "job": {"no_such_key": 1}})"),
           std::string(R"({"status": "done", "job": {}, "first_epoch": "3"})"),
           std::string(R"({"status": "done", "job": {}, "first_epoch": -3})"),
           std::string(R"({"status": "done", "job": {}, "first_step": -3})"),
           std::string(R"({"status": "done", "job": {}, "checkpoint": 3})"),
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
