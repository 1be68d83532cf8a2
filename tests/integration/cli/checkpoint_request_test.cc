// A checkpoint on request: SIGUSR1 to the coordinator.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class CheckpointRequestTest : public testing::CliTest {
 protected:
  // A daemon of the run by its program's name; 0: there is none.
  pid_t DaemonOf(const std::string& program) const {
    for (const pid_t pid : Daemons(Path("run"))) {
      const std::string command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("");
      if (absl::EndsWith(command.substr(0, command.find('\0')), "/" + program)) return pid;
    }
    return 0;
  }
};

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

// The servers lose all that was trained before any checkpoint has it, and nobody trains it again
// before the next one: what that holds are initial values.
TEST_F(CheckpointRequestTest, OneOfInitialValuesCountsNoSteps) {
  auto training =
      StartTraining({"--local", "--workers=1", "--ps=1", "--set", "checkpoint.every=never"});
  WaitForSteps();
  const pid_t worker = DaemonOf("worker"), server = DaemonOf("psserver");
  ASSERT_GT(worker, 0);
  ASSERT_GT(server, 0);
  ASSERT_EQ(::kill(worker, SIGSTOP), 0);
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  const std::string checkpoints = Path("run/checkpoints");
  ASSERT_TRUE(testing::Eventually([&] {
    // A request that comes while the server is gone fails.
    ::kill(training->pid(), SIGUSR1);
    const auto complete = ListCheckpoints(checkpoints);
    return complete.ok() && !complete->empty();
  })) << Output();
  const auto complete = ListCheckpoints(checkpoints);
  MU_ASSERT_OK(complete);
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(complete->front()));
  EXPECT_EQ(manifest.position().steps(), 0u) << "the worker stands still";
  EXPECT_EQ(manifest.steps(), 0u);
  EXPECT_EQ(manifest.samples(), 0u);
  ::kill(worker, SIGCONT);
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130) << "it still ran";
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
