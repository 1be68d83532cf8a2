// How a run ends before its end: Ctrl-C, SIGTERM, SIGKILL. No local daemon outlives its
// coordinator.
#include <gmock/gmock.h>

#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using StoppingTest = testing::CliTest;

TEST_F(StoppingTest, CtrlCStopsCleanlyAndSaves) {
  auto training = StartTraining();
  WaitForSteps();
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_THAT(Output(), HasSubstr("again to stop at once"));
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "stopped");
  EXPECT_EQ(report["error"], "");
  EXPECT_GT(report["steps"], 0);
  EXPECT_TRUE(FileExists(JoinPath(report["checkpoint"].get<std::string>(), "manifest.json")));
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(StoppingTest, SigtermIsTheSame) {
  auto training = StartTraining();
  MU_ASSERT_OK(training->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(training.get()), 143);
  EXPECT_EQ(Report(Path("run/report.json"))["status"], "stopped");
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(StoppingTest, CtrlCTwiceStopsAtOnce) {
  auto training = StartTraining();
  // A daemon that hangs holds up the clean stop, so the second signal finds the coordinator still
  // there.
  const std::vector<pid_t> pids = Daemons(Path("run"));
  ASSERT_EQ(pids.size(), 4u);
  for (const pid_t pid : pids) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  MU_ASSERT_OK(training->Kill(SIGINT));
  ASSERT_TRUE(testing::Eventually(
      [&] { return Output().find("again to stop at once") != std::string::npos; }));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_THAT(Output(), HasSubstr("stopped at once"));
  for (const pid_t pid : pids) ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ExpectNoDaemonLeft(Path("run"), 4);
}

// 63 batches are an epoch: 100 steps end within the second, and nobody counts the others.
TEST_F(StoppingTest, MaxStepsOfEpochsWithoutEnd) {
  const std::string job = Job(
      {{"{epochs: 1, batch_size: 32}", "{epochs: 4000000000, batch_size: 32, max_steps: 100}"}});
  EXPECT_EQ(Run({"train", job, "--workers=2", "--job_dir=" + Path("run")}), 0) << Output();
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "done");
  EXPECT_EQ(report["steps"], 100);
  EXPECT_GE(report["samples"], 2000 + 36 * 32);
  EXPECT_LE(report["samples"], 2000 + 37 * 32);
}

TEST_F(StoppingTest, NoDaemonOutlivesAKilledCoordinator) {
  auto training = StartTraining({"--workers=3"});
  MU_ASSERT_OK(training->Kill(SIGKILL));
  EXPECT_EQ(ExitOf(training.get()), -SIGKILL);
  ExpectNoDaemonLeft(Path("run"), 5);
}

TEST_F(StoppingTest, WhatWasStoppedCanBeTrainedOn) {
  auto training = StartTraining();
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_EQ(Run({"train", Job(), "--checkpoint=" + Path("run"), "--job_dir=" + Path("next"),
                 "--trace=" + Path("t.json")}),
            0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("begins with " + Path("run/checkpoints/")));
  EXPECT_EQ(Report(Path("next/report.json"))["samples"], 2000);
  EXPECT_TRUE(Report(Path("t.json")).contains("traceEvents"));  // more of it: trace_test.cc
  ExpectNoDaemonLeft(Path("next"), 4);
}

}  // namespace
}  // namespace mu
