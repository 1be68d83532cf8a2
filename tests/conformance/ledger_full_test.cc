// Checkpoints fail for so long that the servers' memories of applied updates are full.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::InFlight;
using testing::OnRequest;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WaitWhile;

int64_t LinesWith(const std::string& text, const std::string& log) {
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(log).value_or(""), '\n');
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& line) { return absl::StrContains(line, text); });
}

// Functions of one step, more than the servers may remember, and no folder for checkpoints.
void PausesUntilACheckpointSucceeds(absl::Duration heartbeat) {
  TestClusterOptions options = {.workers = 2, .ps = 2, .heartbeat = heartbeat};
  options.adjust = [](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "psserver") daemon->args.push_back("--applied_memory=0.03");  // 140 functions
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  Coordinator& c = cluster->coordinator();
  const std::string log = cluster->directory() + "/coordinator.log";
  MU_ASSERT_OK(InitLogging({.role = "coordinator", .file = log, .crash_handler = false}));
  const std::string folder = cluster->directory() + "/checkpoints";
  testing::WriteFile(folder, "a file where the folder ought to be");
  Checkpointer checkpointer(&c, OnRequest(folder));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 1000}));
  constexpr uint64_t kFunctions = 250;
  job.ScheduleAll(/*steps_per_function=*/1);
  WaitWhile([&] { return !c.Stats().updates_paused; });
  EXPECT_EQ(LinesWith("no new function that changes parameters is started: server ", log), 1);
  WaitWhile([&] { return InFlight(c, 0) + InFlight(c, 1) > 0; });

  const RuntimeStats before = c.Stats();
  EXPECT_LT(before.functions, kFunctions);
  const uint64_t failed = checkpointer.failed();
  WaitWhile([&] { return checkpointer.failed() < failed + 2; });
  const RuntimeStats after = c.Stats();
  EXPECT_TRUE(after.updates_paused);
  // Those that a server refused may be sent once more while the other's report is on its way.
  EXPECT_LE(after.runs, before.runs + 8) << "what has no room is not sent";
  EXPECT_LE(after.functions, before.functions + 8);

  MU_ASSERT_OK(RemoveFile(folder));
  job.JoinAndCheck();
  EXPECT_GE(checkpointer.taken(), 2u);
  EXPECT_LE(c.Stats().runs, kFunctions + 40) << "each runs once, or is refused now and then";
  EXPECT_GE(LinesWith("functions that change parameters are started again", log), 1);
  EXPECT_THAT(c.Stats().failures, ::testing::IsEmpty()) << "nobody's fault";
}

TEST(Conformance, LedgerFull) { PausesUntilACheckpointSucceeds(absl::Milliseconds(20)); }

TEST(Conformance, LedgerFullBeforeAHeartbeatSaysSo) {
  PausesUntilACheckpointSucceeds(absl::Milliseconds(500));
}

// Without recovery the low-water mark rises by itself.
TEST(Conformance, LedgerFullWithoutRecovery) {
  TestClusterOptions options = {.workers = 2, .ps = 1, .queue_bound = 1000};
  options.adjust = [](const std::string& role, int, SubprocessOptions* daemon) {
    if (role == "psserver") daemon->args.push_back("--applied_memory=0.005");  // 23 functions
  };
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 2000}));
  job.ScheduleAll(/*steps_per_function=*/1);
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
