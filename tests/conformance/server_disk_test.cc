// A server on a machine where the checkpoints' disk is not mounted: the server is at fault, the
// checkpoints are not.
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Losses;
using testing::OnRequest;
using testing::TestCluster;
using testing::TestClusterOptions;

// The same program, which sees an empty folder in the place of `directory`. Its pid is that of the
// program.
SubprocessOptions WithoutFolder(const std::string& directory, SubprocessOptions options) {
  std::vector<std::string> args = {
      "--mount", "sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\"", directory, options.path};
  args.insert(args.end(), options.args.begin(), options.args.end());
  options.path = "unshare";
  options.args = std::move(args);
  return options;
}

bool CanHideFolders() {
  SubprocessOptions options;
  options.path = "true";
  const auto process = Subprocess::Start(WithoutFolder("/mnt", options));
  return process.ok() && (*process)->Wait().ok();
}

class ServerDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanHideFolders()) GTEST_SKIP() << "mounts can be made by root only";
    TestClusterOptions options{.workers = 2, .ps = 2};
    options.adjust = [this](const std::string& role, int, SubprocessOptions* daemon) {
      if (hidden_ && role == "psserver") *daemon = WithoutFolder(checkpoints_, *daemon);
    };
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start(std::move(options)));
    checkpoints_ = cluster_->directory() + "/checkpoints";
  }
  Coordinator& c() { return cluster_->coordinator(); }

  // Server 1 comes without its disk, and ends.
  void ServerOneComesInVain() {
    hidden_ = true;
    MU_ASSERT_OK(cluster_->StartServer(1));
    hidden_ = false;
    Subprocess& process = cluster_->process("psserver", 1);
    const std::optional<ExitStatus> end = process.WaitFor(absl::Seconds(8));
    ASSERT_TRUE(end.has_value()) << "a server that cannot read a checkpoint stays";
    EXPECT_EQ(end->code, 4) << "whoever started it starts another one";
    c().runtime().DaemonDied(process.pid(), "ended by itself");
  }

  std::unique_ptr<TestCluster> cluster_;
  std::string checkpoints_;
  bool hidden_ = false;
};

TEST_F(ServerDisk, ServerWithoutItsDisk) {
  Checkpointer checkpointer(&c(), OnRequest(checkpoints_));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, {.records = 4000}));
  const auto run = [&](int functions) {
    for (int i = 0; i < functions; ++i) c().Schedule(job.step(), {.steps = 10});
  };
  run(15);
  MU_ASSERT_OK(c().Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::string older, checkpointer.TakeNow());
  run(35);
  MU_ASSERT_OK(c().Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::string newest, checkpointer.TakeNow());
  cluster_->KillServer(1);
  ServerOneComesInVain();
  ServerOneComesInVain();
  MU_ASSERT_OK(cluster_->StartServer(1));
  run(50);
  job.JoinAndCheck();
  EXPECT_THAT(ListCheckpoints(checkpoints_).value(), ElementsAre(older, newest));
  EXPECT_THAT(Losses(c(), pb::ROLE_PSSERVER), ElementsAre("died", "cannot_read", "cannot_read"));
  for (const MemberFailure& failure : c().Stats().failures) {
    EXPECT_EQ(failure.index, 1u);
    EXPECT_EQ(failure.steps_repeated, 0u) << "the newest checkpoint lacks nothing";
    EXPECT_THAT(failure.message, HasSubstr("restored from " + newest));
  }
  EXPECT_THAT(c().Stats().failures.back().message, HasSubstr("ps-"));
}

TEST_F(ServerDisk, ServerWithoutItsDiskWhileTheJobContinues) {
  constexpr CheckedJob::Size kSize = {.records = 4000};
  std::string checkpoint;
  {
    Checkpointer checkpointer(&c(), OnRequest(checkpoints_));
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
    job.ScheduleAll(20);
    job.WaitForSteps(200);
    MU_ASSERT_OK(checkpointer.TakeNow());
    job.WaitForSteps(400);
    MU_ASSERT_OK_AND_ASSIGN(checkpoint, checkpointer.TakeNow());
  }
  cluster_->DestroyCoordinator();
  MU_ASSERT_OK(cluster_->StartCoordinator());
  Checkpointer checkpointer(&c(), OnRequest(checkpoints_));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster_, kSize));
  cluster_->KillServer(1);
  absl::StatusOr<RestoredJob> restored;
  std::thread program([&] { restored = c().Restore(); });
  ServerOneComesInVain();
  MU_EXPECT_OK(cluster_->StartServer(1));
  program.join();
  MU_ASSERT_OK(restored);
  EXPECT_EQ(restored->directory, checkpoint) << "no older one is taken in its place";
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
