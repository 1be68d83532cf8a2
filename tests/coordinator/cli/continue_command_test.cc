#include "coordinator/cli/continue_command.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/host_name.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/job_holder.h"
#include "coordinator/training/job_record.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

TEST(ContinueCommand, IsTheCommandOfBeforeWithTheRunsDirectory) {
  CliOptions cli;
  cli.command_line = {"build/bin/coordinator", "train", "my job.yaml", "--set", "a=it's",
                      "--train_again"};
  EXPECT_EQ(ContinueCommand(cli, {}, "/runs/x-1"),
            "build/bin/coordinator train 'my job.yaml' --set 'a=it'\\''s' --job_dir=/runs/x-1");
  EXPECT_THAT(ContinueCommand(cli, {}, "/runs/x-1", /*again=*/true), HasSubstr(" --train_again "));
  cli.job_dir = "/runs/x-1";
  cli.command_line = {"coordinator", "train", "job.yaml", "--job_dir=/runs/x-1"};
  EXPECT_EQ(ContinueCommand(cli, {}, "/runs/x-1"),
            "coordinator train job.yaml --job_dir=/runs/x-1");
  cli.job_dir.clear();
  cli.command_line.pop_back();
  pb::JobProto job;
  job.set_job_dir("/runs/x-1");
  EXPECT_EQ(ContinueCommand(cli, job, "/runs/x-1"), "coordinator train job.yaml");
}

TEST(ContinueCommand, NamesNoPipeOfTheProgramThatStartedTheRun) {
  CliOptions cli;
  cli.job_dir = "/runs/x-1";
  cli.command_line = {"coordinator", "train", "job.yaml", "--parent_pipe_fd=3",
                      "--job_dir=/runs/x-1"};
  EXPECT_EQ(ContinueCommand(cli, {}, "/runs/x-1"),
            "coordinator train job.yaml --job_dir=/runs/x-1");
  cli.command_line = {"coordinator",      "train", "job.yaml",
                      "--parent_pipe_fd", "3",     "--job_dir=/runs/x-1"};
  EXPECT_EQ(ContinueCommand(cli, {}, "/runs/x-1"),
            "coordinator train job.yaml --job_dir=/runs/x-1");
}

TEST(ContinueCommand, EndsNobodyElse) {
  CliOptions cli;
  cli.job_dir = "/runs/x-1";
  for (const char* flag : {"--take_over", "--take-over"}) {
    cli.command_line = {"coordinator", "train", "job.yaml", flag, "--job_dir=/runs/x-1"};
    EXPECT_EQ(ContinueCommand(cli, {}, "/runs/x-1"),
              "coordinator train job.yaml --job_dir=/runs/x-1");
  }
}

class UnfinishedRunTest : public ::testing::Test {
 protected:
  pb::JobProto Job(uint64_t seed = 1) {
    pb::JobProto job;
    job.set_name("small");
    job.set_seed(seed);
    return job;
  }
  std::string Run(const std::string& time) { return absl::StrCat(runs_->path(), "/small-", time); }
  void Begin(const std::string& time, const std::string& status, uint64_t seed = 1) {
    const std::string checkpoint = Run(time) + "/checkpoints/ckpt-00000001";
    MU_ASSERT_OK(MakeDirectories(checkpoint));
    MU_ASSERT_OK(WriteManifest(checkpoint, {}));
    JobRecord record;
    record.status = status;
    record.job = Job(seed);
    MU_ASSERT_OK(WriteJobRecord(Run(time), record));
  }
  std::string Found() { return UnfinishedRun(runs_->path(), Job()); }

  absl::StatusOr<TempDirectory> runs_ = TempDirectory::Create("unfinished-run");
};

TEST_F(UnfinishedRunTest, IsOfThisJobAndHasNotComeToItsEnd) {
  EXPECT_EQ(Found(), "");
  Begin("20260101-000000", "done");
  EXPECT_EQ(Found(), "");
  Begin("20260101-000001", "stopped", /*seed=*/2);
  EXPECT_EQ(Found(), "") << "of another job";
  Begin("20260101-000002", "stopped");
  EXPECT_EQ(Found(), Run("20260101-000002"));
}

TEST_F(UnfinishedRunTest, MayBeInAFolderOfAnyName) {
  Begin("20260101-000000", "stopped");
  const std::string mine = JoinPath(runs_->path(), "mine");
  MU_ASSERT_OK(RenameFile(Run("20260101-000000"), mine));
  EXPECT_EQ(Found(), mine);
}

TEST_F(UnfinishedRunTest, IsNotTrainedByAnotherProcess) {
  Begin("20260101-000000", "running");
  EXPECT_EQ(Found(), Run("20260101-000000")) << "it has died";
  const auto lock = [&](int64_t pid, const std::string& host) {
    MU_ASSERT_OK(WriteFileAtomic(Run("20260101-000000") + "/lock",
                                 ToText({.job = 1, .pid = pid, .host = host})));
  };
  lock(getpid(), HostName());
  EXPECT_EQ(Found(), "");
  lock(1 << 30, HostName());
  EXPECT_EQ(Found(), Run("20260101-000000")) << "there is no such process";
  lock(1 << 30, "elsewhere");
  EXPECT_EQ(Found(), "") << "nobody knows";
}

}  // namespace
}  // namespace mu
