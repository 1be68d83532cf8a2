// The checker is checked: with one protection taken away, some history fails. Each test stops at
// the first.
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

class Checker : public ::testing::TestWithParam<Protection> {};

TEST_P(Checker, NoticesWithout) {
  const Protection& protection = GetParam();
  ScenarioLimits limits = *FindScenario(protection.scenario);
  protection.take_away(&limits.broken);
  const Summary broken = RunMany(0, protection.within, 1, limits, /*stop_early=*/true);
  ASSERT_GT(broken.failures, 0u) << "nothing was noticed in " << broken.histories << " histories";
  const uint64_t seed = broken.first_failures.begin()->first;
  const Outcome whole = RunOne(seed, *FindScenario(protection.scenario));
  EXPECT_TRUE(whole.ok()) << "seed " << seed
                          << " fails with the protection as well: " << whole.problem;
}

INSTANTIATE_TEST_SUITE_P(Protections, Checker, ::testing::ValuesIn(Protections()),
                         TestName<Protection>);

}  // namespace
}  // namespace mu::sim
