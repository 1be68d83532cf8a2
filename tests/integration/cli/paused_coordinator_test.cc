#include "tests/integration/cli/paused_coordinator.h"

namespace mu {
namespace {

using testing::PausedCoordinatorTest;

// The daemons' heartbeats found nobody for three timeouts.
TEST_F(PausedCoordinatorTest, CoordinatorPaused) {
  TrainPaused(/*member_timeout=*/2, absl::Seconds(6));
}

}  // namespace
}  // namespace mu
