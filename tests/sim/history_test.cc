// Histories with all kinds of faults, and that a seed is a history.
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

TEST(Simulation, SurvivesEverything) { ExpectHolds("everything", 2500); }

TEST(Simulation, ASeedIsOneHistory) {
  const ScenarioLimits& limits = *FindScenario("everything");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const HistoryResult first = RunOne(seed, limits, /*trace=*/true);
    const HistoryResult again = RunOne(seed, limits, /*trace=*/true);
    EXPECT_EQ(first.trace, again.trace) << "seed " << seed;
    EXPECT_EQ(RunOne(seed, limits, /*trace=*/false).events, first.events)
        << "a trace changes history " << seed;
  }
}

TEST(Simulation, ThreadsShareNothing) {
  const ScenarioLimits& limits = *FindScenario("everything");
  const Summary alone = RunMany(0, 300, 1, limits);
  const Summary together = RunMany(0, 300, 3, limits);
  EXPECT_EQ(alone.events, together.events);
  EXPECT_EQ(alone.virtual_time, together.virtual_time);
}

TEST(Simulation, FaultsStrike) {
  // Each kind does something: its histories differ from undisturbed ones of the same cluster.
  for (int kind = 0; kind < kFaultKinds; ++kind) {
    ScenarioLimits limits = *FindScenario("undisturbed");
    limits.checkpoint_every = 20 * kMillisecond;
    const Summary undisturbed = RunMany(0, 30, 1, limits);
    limits.kinds = {static_cast<Fault>(kind)};
    limits.least_strikes = limits.most_strikes = 3;
    const Summary struck = RunMany(0, 30, 1, limits);
    EXPECT_NE(struck.events, undisturbed.events) << ToString(static_cast<Fault>(kind));
  }
}

}  // namespace
}  // namespace mu::sim
