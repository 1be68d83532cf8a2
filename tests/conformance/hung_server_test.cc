// Servers whose heartbeats arrive and that do nothing else: their disk does not answer, or they
// answer no fence.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/env/file.h"
#include "common/rpc/faults.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::BinaryDirectory;
using testing::CheckedJob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Losses;
using testing::OnRequest;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WaitWhile;

constexpr absl::Duration kTimeout = absl::Seconds(1);

// Server 1 has a disk of which a call hangs when Hang() wants it.
class HungDisk : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a library that is preloaded would come before AddressSanitizer's";
#endif
    auto directory = TempDirectory::Create("muster-hung-disk");
    MU_ASSERT_OK(directory);
    directory_.emplace(*std::move(directory));
  }
  std::string Preloaded() const { return "LD_PRELOAD=" MUSTER_HANG_DISK; }
  std::string Disk() const { return "MUSTER_TEST_DISK=" + directory_->path(); }
  std::string Wish(const std::string& call) const { return directory_->path() + "/" + call; }
  void Hang(const std::string& call) { std::ofstream(Wish(call)) << "the next one\n"; }

  // With a launcher, which starts another process in the place of one that it has killed.
  void StartLocal() {
    ClusterOptions options;
    options.workers = options.ps = 2;
    options.name = "test";
    options.job_dir = directory_->path() + "/job";
    options.binary_dir = directory_->path() + "/bin";
    options.member_timeout = kTimeout;
    MU_ASSERT_OK(MakeDirectories(options.binary_dir));
    const std::string server = options.binary_dir + "/psserver";
    std::ofstream(server) << "#!/bin/sh\n"
                          << "case \"$*\" in *--index=1*) export " << Preloaded() << " " << Disk()
                          << ";; esac\n"
                          << "exec " << BinaryDirectory() << "/psserver \"$@\"\n";
    ASSERT_EQ(chmod(server.c_str(), 0755), 0);
    ASSERT_EQ(
        symlink((BinaryDirectory() + "/worker").c_str(), (options.binary_dir + "/worker").c_str()),
        0);
    MU_ASSERT_OK_AND_ASSIGN(local_, Local(options));
  }

  std::optional<TempDirectory> directory_;
  std::unique_ptr<Coordinator> local_;
};

std::string CheckpointsIn(const std::string& directory) { return directory + "/checkpoints"; }

class HungDiskOf : public HungDisk, public ::testing::WithParamInterface<const char*> {};

TEST_P(HungDiskOf, PsHangsInASave) {
  StartLocal();
  Checkpointer checkpointer(local_.get(), OnRequest(CheckpointsIn(directory_->path())));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*local_, directory_->path(), {.records = 8000}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  MU_ASSERT_OK(checkpointer.TakeNow());
  Hang(GetParam());
  EXPECT_FALSE(checkpointer.TakeNow().ok()) << "it is given up";
  EXPECT_FALSE(FileExists(Wish(GetParam())));
  job.JoinAndCheck();
  MU_EXPECT_OK(checkpointer.TakeNow());
  EXPECT_THAT(Losses(*local_, pb::ROLE_PSSERVER), ElementsAre("hangs"));
  const MemberFailure failure = local_->Stats().failures.front();
  EXPECT_EQ(failure.index, 1u);
  EXPECT_THAT(failure.message, HasSubstr("moved no byte for 3s"));
  EXPECT_GE(failure.detection_latency_seconds, 3);
  EXPECT_GE(failure.recovered_seconds, 0);
}

INSTANTIATE_TEST_SUITE_P(Conformance, HungDiskOf, ::testing::Values("write", "sync"));

TEST_F(HungDisk, PsHangsInARestore) {
  StartLocal();
  Checkpointer checkpointer(local_.get(), OnRequest(CheckpointsIn(directory_->path())));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*local_, directory_->path(), {.records = 8000}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  MU_ASSERT_OK(checkpointer.TakeNow());
  Hang("read");
  for (const Member& server : local_->runtime().Servers()) {
    if (server.index != 1) continue;
    ASSERT_EQ(kill(static_cast<pid_t>(server.pid), SIGKILL), 0);
  }
  job.JoinAndCheck();
  EXPECT_FALSE(FileExists(Wish("read")));
  EXPECT_THAT(Losses(*local_, pb::ROLE_PSSERVER), ElementsAre("died", "hangs"));
}

// Nobody kills it: it has to end by itself, although a thread of it never comes back.
TEST_F(HungDisk, PsThatHangsEndsByItself) {
  TestClusterOptions options{.workers = 2, .ps = 2, .member_timeout = kTimeout};
  options.adjust = [this](const std::string& role, int index, SubprocessOptions* daemon) {
    if (role != "psserver" || index != 1) return;
    daemon->environment.push_back(Preloaded());
    daemon->environment.push_back(Disk());
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(std::move(options)));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(CheckpointsIn(directory_->path())));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  Hang("write");
  EXPECT_FALSE(checkpointer.TakeNow().ok());
  const std::optional<ExitStatus> end = cluster->process("psserver", 1).WaitFor(absl::Seconds(8));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 4) << end->ToString();
  MU_ASSERT_OK(cluster->StartServer(1));
  job.JoinAndCheck();
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), ElementsAre("hangs"));
}

TEST(Conformance, PsThatAnswersNoFence) {
  const auto faults = std::make_shared<FaultPlan>(1);
  TestClusterOptions options{.workers = 2, .ps = 1, .member_timeout = kTimeout};
  options.coordinator_transport = [&] { return NewFaultyTransport(NewGrpcTransport(), faults); };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(std::move(options)));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(CheckpointsIn(cluster->directory())));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 2000}));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, testing::DefineLog(c, "log"));
  job.ScheduleAll(20);
  job.JoinAndCheck();
  faults->Add({.method = "/muster.PsServer/Fence", .fault = Fault::kLoseReply});
  c.Schedule(log, {.args = {{"x", -1}}});
  WaitWhile([&] { return c.Stats().servers > 0; });
  const std::optional<ExitStatus> end = cluster->process("psserver", 0).WaitFor(absl::Seconds(8));
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 4) << end->ToString();
  faults->Clear();
  MU_ASSERT_OK(cluster->StartServer(0));
  EXPECT_EQ(KindOf(c.Join()), pb::ERROR_USER) << "the error is reported once";
  job.JoinAndCheck();
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), ElementsAre("hangs"));
}

}  // namespace
}  // namespace mu
