#include "tests/integration/cli/paused_coordinator.h"

namespace mu {
namespace {

using testing::PausedCoordinatorTest;

// Connections break after 15 s (keepalive), and workers give their runs up after three timeouts
// more, here 9 s.
TEST_F(PausedCoordinatorTest, CoordinatorPausedBeyondPatience) {
  ASSERT_NO_FATAL_FAILURE(TrainPaused(/*member_timeout=*/3, absl::Seconds(30)));
  EXPECT_THAT(ReadFile(Path("run/logs/coordinator.log")).value_or(""),
              ::testing::HasSubstr("has broken and is opened again"));
}

}  // namespace
}  // namespace mu
