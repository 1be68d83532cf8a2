// The promises of tests/conformance that concern decisions: a thousand seeds each, with the faults
// of that promise. A scenario that is there for a moment has to meet it.
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

class SimulatedConformance : public ::testing::TestWithParam<NamedScenario> {};

TEST_P(SimulatedConformance, Holds) { ExpectHolds(GetParam(), 1000); }

INSTANTIATE_TEST_SUITE_P(Scenarios, SimulatedConformance, ::testing::ValuesIn(NamedScenarios()),
                         TestName<NamedScenario>);

}  // namespace
}  // namespace mu::sim
