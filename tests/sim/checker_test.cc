// The checker is checked: with one protection taken away, some history fails. Each test stops at
// the first.
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

constexpr uint64_t kWithin = 10000;

void ExpectNoticed(bool Broken::*protection, const std::string& scenario = "everything") {
  ScenarioLimits limits = *FindScenario(scenario);
  limits.broken.*protection = true;
  const Summary broken = RunMany(0, kWithin, 1, limits, /*stop_early=*/true);
  ASSERT_GT(broken.failures, 0u) << "nothing was noticed in " << broken.histories << " histories";
  const uint64_t seed = broken.first_failures[0].seed;
  limits.broken = Broken();
  const HistoryResult whole = RunOne(seed, limits);
  EXPECT_TRUE(whole.ok) << "seed " << seed
                        << " fails with the protection as well: " << whole.problem;
}

TEST(Checker, NoticesMissingDeduplication) { ExpectNoticed(&Broken::deduplication); }
TEST(Checker, NoticesThatARestoredStatesMemoryIsIgnored) { ExpectNoticed(&Broken::inheritance); }
TEST(Checker, NoticesAChecksumThatNobodyLooksAt) {
  ExpectNoticed(&Broken::checksums, "torn_shard");
}
TEST(Checker, NoticesMissingFencing) { ExpectNoticed(&Broken::fencing); }
TEST(Checker, NoticesMissingLeasesOfServers) { ExpectNoticed(&Broken::leases); }
TEST(Checker, NoticesMissingRequeueing) { ExpectNoticed(&Broken::requeueing); }
TEST(Checker, NoticesALowWaterMarkThatIsTooHigh) { ExpectNoticed(&Broken::low_water_high); }
TEST(Checker, NoticesALowWaterMarkThatStandsStill) { ExpectNoticed(&Broken::low_water_stuck); }
TEST(Checker, NoticesACheckpointThatOutlivesAFence) {
  ExpectNoticed(&Broken::commit_after_fence, "user_errors");
}

TEST(Checker, NoticesACancellationBelowTheLowWaterMarkOnly) {
  ExpectNoticed(&Broken::cancel_below_mark, "user_errors");
}

TEST(Checker, NoticesAPositionThatIsNotedAfterTheCuts) { ExpectNoticed(&Broken::late_position); }
TEST(Checker, NoticesFunctionsThatAreNotInstalledAgain) { ExpectNoticed(&Broken::not_reinstalled); }
TEST(Checker, NoticesALoadThatLeavesAMixture) { ExpectNoticed(&Broken::mixed_load, "torn_shard"); }

TEST(Checker, NoticesAFenceOfAnOlderGeneration) {
  ExpectNoticed(&Broken::late_fences, "user_errors");
}

TEST(Checker, NoticesAStepThatIsResumedEarly) { ExpectNoticed(&Broken::resumed_early); }
TEST(Checker, NoticesAStepThatIsResumedLate) { ExpectNoticed(&Broken::resumed_late); }
TEST(Checker, NoticesARoutingThatIsNotRenewed) { ExpectNoticed(&Broken::old_routing); }
TEST(Checker, NoticesResultsThatADrainKeeps) { ExpectNoticed(&Broken::results_kept); }
TEST(Checker, NoticesARunInTheGenerationOfNow) { ExpectNoticed(&Broken::generation_of_now); }
TEST(Checker, NoticesACancellationThatIsAnsweredEarly) {
  ExpectNoticed(&Broken::early_cancel, "user_errors");
}
TEST(Checker, NoticesRunsInAnyOrder) { ExpectNoticed(&Broken::any_order); }
TEST(Checker, NoticesAFunctionOfAFormerEpoch) { ExpectNoticed(&Broken::late_install); }

}  // namespace
}  // namespace mu::sim
