// Efficiencies that can be told without a simulation, or whose order can.
#include <gtest/gtest.h>

#include "tests/sim/spot/spot_cluster.h"

namespace mu::sim {
namespace {

SpotScenario Small() {
  SpotScenario scenario;
  scenario.workers = 8;
  scenario.servers = 2;
  scenario.lasts = absl::Minutes(30);
  return scenario;
}

TEST(Spot, WithoutLossesNothingIsWasted) {
  SpotScenario scenario = Small();
  scenario.losses_per_hour = 0;
  const SpotOutcome outcome = RunSpot(scenario);
  EXPECT_GT(outcome.efficiency, 0.995);
  EXPECT_LE(outcome.efficiency, 1.0);
  EXPECT_EQ(outcome.servers_lost + outcome.workers_lost, 0u);
  EXPECT_GE(outcome.checkpoints, 5u);
}

// Workers hold no state: what is lost with one is its step, and the time until it is back.
TEST(Spot, LossesOfWorkersCostTheirSteps) {
  SpotScenario scenario = Small();
  scenario.losses_per_hour = 6;
  scenario.servers = 1;
  scenario.recovery = RecoveryMode::kShard;
  scenario.restore = scenario.timeout = absl::Milliseconds(500);
  scenario.heartbeat = absl::Milliseconds(100);
  scenario.replacement = absl::Seconds(1);
  scenario.lasts = absl::Minutes(20);
  const SpotOutcome outcome = RunSpot(scenario);
  EXPECT_GT(outcome.workers_lost, 5u);
  EXPECT_GT(outcome.efficiency, 0.95);
}

TEST(Spot, RollingBackAllCostsMoreTheRarerCheckpointsAre) {
  const auto efficiency = [](RecoveryMode recovery, absl::Duration every) {
    double sum = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SpotScenario scenario = Small();
      scenario.losses_per_hour = 2;
      scenario.recovery = recovery;
      scenario.checkpoint_every = every;
      scenario.save = absl::Seconds(2);
      scenario.seed = seed;
      const SpotOutcome outcome = RunSpot(scenario);
      EXPECT_GT(outcome.servers_lost, 0u);
      sum += outcome.efficiency;
    }
    return sum / 5;
  };
  const double often = efficiency(RecoveryMode::kAll, absl::Minutes(1));
  const double rarely = efficiency(RecoveryMode::kAll, absl::Minutes(10));
  const double shard = efficiency(RecoveryMode::kShard, absl::Minutes(10));
  EXPECT_GT(often, rarely + 0.05);
  EXPECT_GT(shard, rarely + 0.05) << "functions go on where they were";
}

}  // namespace
}  // namespace mu::sim
