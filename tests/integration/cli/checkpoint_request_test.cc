// A checkpoint on request: SIGUSR1 to the coordinator.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

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

// On a full disk, say: here a file takes the folder's place.
TEST_F(CheckpointRequestTest, OneThatFailsIsShownWhileTrainingGoesOn) {
  auto training = StartTraining({"--set", "checkpoint.every=never"});
  WaitForSteps();
  const std::string checkpoints = Path("run/checkpoints");
  MU_ASSERT_OK(WriteFileAtomic(checkpoints, "in the way"));
  const std::string failed = "a checkpoint failed, training goes on: ";
  const std::string again = "a checkpoint has succeeded again, the first in ";
  const auto is_shown = [&](const std::string& text) {
    return testing::Eventually([&] { return absl::StrContains(Output(), "note: " + text); });
  };
  ASSERT_EQ(::kill(training->pid(), SIGUSR1), 0);
  ASSERT_TRUE(is_shown(failed)) << Output();
  MU_ASSERT_OK(RemoveFile(checkpoints));
  ASSERT_EQ(::kill(training->pid(), SIGUSR1), 0);
  ASSERT_TRUE(is_shown(again)) << Output();
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130) << "it still ran";
  EXPECT_THAT(Report(Path("run/report.json"))["warnings"].get<std::vector<std::string>>(),
              AllOf(Contains(AllOf(HasSubstr(failed), HasSubstr(checkpoints))),
                    Contains(HasSubstr(again))));
}

}  // namespace
}  // namespace mu
