// A checkpoint on request: SIGUSR1 to the coordinator.
#include <gmock/gmock.h>

#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using CheckpointRequestTest = testing::CliTest;

TEST_F(CheckpointRequestTest, ASignalTakesOneAndTrainingGoesOn) {
  auto training = StartTraining({"--set", "checkpoint.every=never"});
  WaitForSteps();
  const std::string checkpoints = Path("run/checkpoints");
  for (size_t taken = 1; taken <= 2; ++taken) {
    ASSERT_EQ(::kill(training->pid(), SIGUSR1), 0);
    ASSERT_TRUE(testing::Eventually([&] {
      const auto complete = ListCheckpoints(checkpoints);
      return complete.ok() && complete->size() == taken;
    })) << Output();
  }
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130) << "it still ran";
  EXPECT_EQ(ListCheckpoints(checkpoints)->size(), 3u) << "and the one at the end";
}

}  // namespace
}  // namespace mu
