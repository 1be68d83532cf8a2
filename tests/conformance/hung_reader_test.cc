// A worker whose step never ends, since a disk does not answer, and that is asked to end.
#include <csignal>
#include <fstream>
#include <string>

#include "common/env/file.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::Eventually;
using testing::InFlight;
using testing::Losses;
using testing::TestCluster;
using testing::WaitWhile;

TEST(Conformance, WorkerStuckInAStepEndsWhenItIsAskedTo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a library that is preloaded would come before AddressSanitizer's";
#endif
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory disk, TempDirectory::Create("muster-hung-reader"));
  const auto adjust = [&](const std::string& role, int index, SubprocessOptions* options) {
    if (role != "worker" || index != 1) return;
    options->environment = {"LD_PRELOAD=" MUSTER_HANG_DISK, "MUSTER_TEST_DISK=" + disk.path(),
                            "MUSTER_TEST_DISK_FILES=.csv"};
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          TestCluster::Start({.workers = 1, .ps = 2, .adjust = adjust}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(cluster->StartWorker(1, {"--drain_timeout=2", "--drained_exit_code=143"}));
  testing::WaitForWorkers(c, 2);
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  const std::string wish = disk.path() + "/read";
  std::ofstream(wish) << "the next one\n";
  job.ScheduleAll(20);
  WaitWhile([&] { return FileExists(wish); });
  // The others' work ends; what the worker has needs what it reads.
  uint64_t steps = 0;
  do {
    steps = c.Stats().steps;
  } while (Eventually([&] { return c.Stats().steps != steps; }, absl::Milliseconds(300)));
  EXPECT_GT(InFlight(c, 1), 0u);
  Subprocess& worker = cluster->process("worker", 1);
  MU_ASSERT_OK(worker.Kill(SIGTERM));
  const auto exit = worker.WaitFor(absl::Seconds(10));
  ASSERT_TRUE(exit.has_value()) << "it waits for its step";
  EXPECT_EQ(exit->code, 143) << exit->ToString();
  job.JoinAndCheck();
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), ::testing::ElementsAre("left"));
  for (const MemberFailure& failure : c.Stats().failures) EXPECT_EQ(failure.steps_repeated, 0u);
}

}  // namespace
}  // namespace mu
