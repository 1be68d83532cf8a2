// Runs that are continued by commands which write the same paths in another way, or which name
// another run that has changed since, and runs that were to be trained again.
#include <gmock/gmock.h>
#include <unistd.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/cli/restart.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RestartTest;

class RestartPathsTest : public RestartTest {
 protected:
  // Two servers, one worker; killed after its second checkpoint.
  void BeginAndKill(std::vector<std::string> args) {
    auto first = Start(std::move(args));
    WaitForCheckpoints(Path("run"), 2);
    MU_ASSERT_OK(first->Kill(SIGKILL));
    ExitOf(first.get());
  }
  std::vector<std::string> Command(const std::string& job, const std::string& job_dir,
                                   std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"train",       job,      "--local",
                                     "--workers=1", "--ps=2", "--job_dir=" + job_dir};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  // The run in "run", whole.
  void ExpectContinued() {
    EXPECT_THAT(Output(), HasSubstr("CONTINUES from "));
    EXPECT_THAT(Output(), Not(HasSubstr("a new run BEGINS")));
    ExpectWhole(Report(Path("run/report.json")));
  }
};

TEST_F(RestartPathsTest, TheJobFileAndTheFolderAreWrittenInAnotherWay) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  MU_ASSERT_OK(MakeDirectories(Path("sub")));
  ASSERT_EQ(Run(Command(Path("./sub/../") + BaseName(job), Path("run") + "//")), 0) << Output();
  ExpectContinued();
}

TEST_F(RestartPathsTest, TheOwnCheckpointIsNamedInAnotherWay) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  ASSERT_EQ(symlink(Path("run/checkpoints").c_str(), Path("link").c_str()), 0);
  ASSERT_EQ(Run(Command(job, Path("run/"), {"--checkpoint=" + Path("link/")})), 0) << Output();
  ExpectContinued();
}

TEST_F(RestartPathsTest, TheCheckpointThatItBeganWithIsNamedInAnotherWay) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("other")}), 0) << Output();
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run"), {"--checkpoint=" + Path("other")}));
  if (HasFatalFailure()) return;
  ASSERT_EQ(symlink(Path("other").c_str(), Path("link").c_str()), 0);
  ASSERT_EQ(Run(Command(job, Path("run"), {"--checkpoint=" + Path("link/./checkpoints/")})), 0)
      << Output();
  ExpectContinued();
}

// What it began with is not there any more, and the newest one that the command names by now cannot
// be read: the run needs neither.
TEST_F(RestartPathsTest, TheRunThatItBeganWithWasTrainedOn) {
  const auto train_other = [&] {
    EXPECT_EQ(Run({"train", Job(), "--job_dir=" + Path("other"), "--train_again", "--set",
                   "checkpoint={keep: 1}"}),
              0)
        << Output();
  };
  train_other();
  const std::vector<std::string> before = Checkpoints(Path("other"));
  const std::vector<std::string> command =
      Command(LongJob(), Path("run"), {"--checkpoint=" + Path("other")});
  BeginAndKill(command);
  if (HasFatalFailure()) return;
  train_other();
  const std::vector<std::string> since = Checkpoints(Path("other"));
  ASSERT_EQ(since.size(), 1u);
  ASSERT_THAT(before, Not(::testing::Contains(since.front())));
  WriteText("other/checkpoints/" + BaseName(since.front()) + "/ps-0.safetensors", "");
  LongJob();
  ASSERT_EQ(Run(command), 0) << Output();
  ExpectContinued();

  // And when it is done, whatever is left there.
  const std::string report = ReadFile(Path("run/report.json")).value_or("");
  train_other();
  LongJob();
  ASSERT_EQ(Run(command), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("it is done: nothing is trained"));
  EXPECT_THAT(Output(), HasSubstr("to train it again from the values of " + Path("other")));
  EXPECT_EQ(ReadFile(Path("run/report.json")).value_or(""), report);
  MU_ASSERT_OK(RemoveTree(Path("other")));
  ASSERT_EQ(Run(command), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("it is done: nothing is trained"));
}

// It had no checkpoint of its own yet, so it begins again: with what it began with if that is
// there, else with the newest.
TEST_F(RestartPathsTest, TheBeginningIsRepeatedAsFarAsItIsThere) {
  const std::vector<std::string> other = {"train", Job(), "--job_dir=" + Path("other"),
                                          "--train_again"};
  ASSERT_EQ(Run(other), 0) << Output();
  const std::string base = Checkpoints(Path("other")).back();
  const std::vector<std::string> command =
      Command(LongJob(), Path("run"), {"--checkpoint=" + Path("other")});
  const auto begin_and_kill_early = [&] {
    LongJob();
    BeginAndKill(command);
    MU_EXPECT_OK(RemoveTree(Path("run/checkpoints")));
  };
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("begins with " + base + " ("));
  Job();
  ASSERT_EQ(Run(other), 0) << Output();
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("begins with " + base + " ("));
  MU_ASSERT_OK(RemoveTree(base));
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("begins with " + Checkpoints(Path("other")).back() + " ("));
}

// A checkpoint that an earlier run has left there is not its own.
TEST_F(RestartPathsTest, TheBeginningIsRepeatedBesideAnEarlierRunsCheckpoint) {
  const std::vector<std::string> other = {"train", Job(), "--job_dir=" + Path("other"),
                                          "--train_again"};
  ASSERT_EQ(Run(other), 0) << Output();
  const std::string base = Checkpoints(Path("other")).back();
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run")}), 0) << Output();
  const std::vector<std::string> earlier = Checkpoints(Path("run"));
  ASSERT_FALSE(earlier.empty());
  const std::vector<std::string> command = Command(
      LongJob(), Path("run"), {"--checkpoint=" + Path("other"), "--set", "checkpoint.keep=0"});
  // As if it had been killed before its first checkpoint.
  const auto begin_and_kill_early = [&] {
    LongJob();
    auto run = Start(command);
    EXPECT_TRUE(testing::Eventually([&] {
      return Checkpoints(Path("run")).size() > earlier.size() || run->TryWait();
    })) << Output();
    EXPECT_EQ(run->TryWait(), std::nullopt) << Output();
    MU_EXPECT_OK(run->Kill(SIGKILL));
    ExitOf(run.get());
    for (const std::string& taken : Checkpoints(Path("run"))) {
      if (!absl::c_linear_search(earlier, taken)) MU_EXPECT_OK(RemoveTree(taken));
    }
    EXPECT_EQ(Checkpoints(Path("run")), earlier);
  };
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("begins with " + base + " ("));
  Job();
  ASSERT_EQ(Run(other), 0) << Output();
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("that has taken no checkpoint: it begins again"));
  EXPECT_THAT(Output(), HasSubstr("begins with " + base + " ("));
  MU_ASSERT_OK(RemoveTree(base));
  begin_and_kill_early();
  EXPECT_THAT(Output(), HasSubstr("begins with " + Checkpoints(Path("other")).back() + " ("));
}

// A server that is lost before the first step needs nothing of the other run.
TEST_F(RestartPathsTest, ACheckpointIsTakenBeforeTheFirstStep) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("other")}), 0) << Output();
  auto training =
      StartTraining({"--local", "--workers=1", "--ps=1", "--checkpoint=" + Path("other"), "--set",
                     "checkpoint={every: never}"});
  EXPECT_EQ(Checkpoints(Path("run")).size(), 1u);
  MU_ASSERT_OK(RemoveTree(Path("other")));
  const std::vector<pid_t> daemons = Daemons(Path("run"));
  ASSERT_EQ(daemons.size(), 2u);
  for (const pid_t pid : daemons) {
    const std::string name = ReadFile(absl::StrCat("/proc/", pid, "/comm")).value_or("");
    if (absl::StartsWith(name, "psserver")) ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }
  EXPECT_TRUE(testing::Eventually([&] {
    return Output().find("restored from " + Path("run/checkpoints/")) != std::string::npos ||
           training->TryWait();
  }));
  EXPECT_EQ(training->TryWait(), std::nullopt) << Output();
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130) << Output();
}

// No daemon comes, so the new run does not begin.
TEST_F(RestartPathsTest, WhatIsDoneStaysWhereTheNextRunDoesNotBegin) {
  const std::string job = Job();
  ASSERT_EQ(Run({"train", job, "--job_dir=" + Path("run")}), 0) << Output();
  const std::string report = ReadFile(Path("run/report.json")).value_or("");
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--train_again", "--listen=127.0.0.1:0",
                 "--insecure", "--start_timeout=1", "--report=" + Path("again.json")}),
            4)
      << Output();
  EXPECT_EQ(ReadFile(Path("run/report.json")).value_or(""), report);
  EXPECT_EQ(Report(Path("again.json"))["status"], "failed");
  const size_t command = Output().rfind("to continue: ");
  ASSERT_NE(command, std::string::npos) << Output();
  EXPECT_THAT(Output().substr(command), HasSubstr(" --train_again "));
  EXPECT_EQ(Run({"train", job, "--job_dir=" + Path("run"), "--train_again"}), 0) << Output();
  EXPECT_THAT(Output(), Not(HasSubstr("nothing is trained")));
}

TEST_F(RestartPathsTest, TrainAgainGoesOnWithWhatIsNotDone) {
  const std::string job = LongJob();
  BeginAndKill(Command(job, Path("run")));
  if (HasFatalFailure()) return;
  ASSERT_EQ(Run(Command(job, Path("run"), {"--train_again"})), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("--train_again trains again what is done"));
  ExpectContinued();
}

}  // namespace
}  // namespace mu
