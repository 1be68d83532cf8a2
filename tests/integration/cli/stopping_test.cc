// How a run ends before its end: Ctrl-C, SIGTERM, SIGKILL. No local daemon outlives its
// coordinator.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class StoppingTest : public testing::CliTest {
 protected:
  // Its evaluation and its prediction, of one record a step, take longer than a test waits.
  std::string LongEvaluation() {
    constexpr int kRecords = 300'000;
    std::string rows = "user,item,rating\n";
    for (int i = 0; i < kRecords; ++i)
      absl::StrAppend(&rows, i % 10, ",", i * 7 % 20, ",", i % 5, ".5\n");
    WriteText("eval.csv", rows);
    return Job({{"model:\n",
                 "  eval: {format: csv, files: [eval.csv], columns: [{name: user, kind: id}, "
                 "{name: item, kind: id}, {name: rating, kind: number}]}\nmodel:\n"},
                {"batch_size: 32", "batch_size: 32, eval_batch_size: 1"}});
  }
  void WaitForOutput(const std::string& text) {
    ASSERT_TRUE(testing::Eventually([&] { return Output().find(text) != std::string::npos; }))
        << Output();
  }
  // Programs whose workers end at once while `gone` exists.
  std::string MakePrograms(const std::string& gone) {
    MU_EXPECT_OK(MakeDirectories(Path("bin")));
    WriteText("bin/worker", absl::StrCat("#!/bin/sh\n[ -e ", gone, " ] && exit 4\nexec ",
                                         MUSTER_BINARY_DIR, "/worker \"$@\"\n"));
    EXPECT_EQ(::chmod(Path("bin/worker").c_str(), 0755), 0);
    EXPECT_EQ(::symlink(absl::StrCat(MUSTER_BINARY_DIR, "/psserver").c_str(),
                        Path("bin/psserver").c_str()),
              0);
    return "--binary_dir=" + Path("bin");
  }
  // Ends the worker of the run in `job_dir`, and the coordinator knows it; none comes back.
  void TakeWorkerAway(const std::string& job_dir, const std::string& gone) {
    WriteText(gone, "");
    for (const pid_t pid : Daemons(job_dir)) {
      const std::string command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("");
      if (command.find("worker") != std::string::npos) {
        EXPECT_EQ(::kill(pid, SIGKILL), 0);
      }
    }
    EXPECT_TRUE(testing::Eventually([&] {
      const auto log = ReadFile(JoinPath(job_dir, "logs/coordinator.log"));
      return log.value_or("").find("it is started again in") != std::string::npos;
    }));
  }
  // What a run that was stopped before it had anything leaves behind.
  void ExpectStopped(const std::string& job_dir) {
    const auto report = Report(JoinPath(job_dir, "report.json"));
    EXPECT_EQ(report["status"], "stopped");
    EXPECT_EQ(report["error"], "");
    EXPECT_EQ(Output().find("error: "), std::string::npos) << Output();
  }
};

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

// The kernel tells all processes of the terminal, and the shell tells its job once more.
TEST_F(StoppingTest, AClosedTerminalStopsCleanlyAndSaves) {
  auto training = StartTraining();
  WaitForSteps();
  for (const pid_t pid : Daemons(Path("run"))) EXPECT_EQ(::kill(pid, SIGHUP), 0);
  MU_ASSERT_OK(training->Kill(SIGHUP));
  training->Kill(SIGHUP).IgnoreError();
  EXPECT_EQ(ExitOf(training.get()), 129);
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "stopped");
  EXPECT_EQ(report["failures"].size(), 0u);
  EXPECT_TRUE(FileExists(JoinPath(report["checkpoint"].get<std::string>(), "manifest.json")));
  ExpectNoDaemonLeft(Path("run"), 4);
}

// As where the end of `| tee log` comes before its own: Ctrl-C is for both.
TEST_F(StoppingTest, NobodyWhoReadsWhatItSaysIsNoReasonToEnd) {
  SubprocessOptions options;
  options.path = "bash";
  options.args = {"-c",
                  "set -o pipefail; \"$@\" | head -n 1",
                  "bash",
                  absl::StrCat(MUSTER_BINARY_DIR, "/coordinator"),
                  "train",
                  Job(),
                  "--job_dir=" + Path("run")};
  options.output_file = Path("head.txt");
  MU_ASSERT_OK_AND_ASSIGN(const auto shell,
                          Subprocess::Start(testing::EndsWithThisTest(std::move(options))));
  EXPECT_EQ(ExitOf(shell.get()), 0) << "141 is SIGPIPE";
  EXPECT_EQ(Report(Path("run/report.json"))["status"], "done");
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(StoppingTest, SigtermIsTheSame) {
  auto training = StartTraining();
  MU_ASSERT_OK(training->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(training.get()), 143);
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["status"], "stopped");
  EXPECT_TRUE(FileExists(JoinPath(report["checkpoint"].get<std::string>(), "manifest.json")));
  ExpectNoDaemonLeft(Path("run"), 4);
}

// Daemons that nobody starts: it would wait for ten minutes.
TEST_F(StoppingTest, CtrlCWhileItWaitsForDaemonsToRegister) {
  for (const auto& [signal, exit_code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    auto waiting = Start({"train", Job(), "--listen=127.0.0.1:0", "--start_timeout=600",
                          absl::StrCat("--job_dir=", Path("run-"), signal)});
    const std::string log = absl::StrCat(Path("run-"), signal, "/logs/coordinator.log");
    ASSERT_TRUE(testing::Eventually(
        [&] { return ReadFile(log).value_or("").find("listens at") != std::string::npos; }));
    MU_ASSERT_OK(waiting->Kill(signal));
    EXPECT_EQ(ExitOf(waiting.get()), exit_code);
    ExpectStopped(absl::StrCat(Path("run-"), signal));
  }
}

// Local daemons that start and never register.
TEST_F(StoppingTest, CtrlCWhileItWaitsForItsOwnDaemons) {
  MU_ASSERT_OK(MakeDirectories(Path("bin")));
  for (const char* name : {"bin/worker", "bin/psserver"}) {
    WriteText(name, "#!/bin/sh\nexec sleep 600\n");
    ASSERT_EQ(::chmod(Path(name).c_str(), 0755), 0);
  }
  auto waiting = Start({"train", Job(), "--binary_dir=" + Path("bin"), "--start_timeout=600",
                        "--job_dir=" + Path("run")});
  ASSERT_TRUE(testing::Eventually([&] { return Daemons(Path("run")).size() == 4; })) << Output();
  MU_ASSERT_OK(waiting->Kill(SIGINT));
  EXPECT_EQ(ExitOf(waiting.get()), 130);
  ExpectStopped(Path("run"));
  ExpectNoDaemonLeft(Path("run"), 4);
}

TEST_F(StoppingTest, CtrlCWhileItEvaluatesKeepsWhatWasTrained) {
  const std::vector<std::string> args = {"train", LongEvaluation(), "--job_dir=" + Path("run")};
  auto training = Start(args);
  WaitForOutput("\nevaluating ");
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  ExpectStopped(Path("run"));
  ExpectNoDaemonLeft(Path("run"), 4);
  const auto stopped = Report(Path("run/report.json"));
  EXPECT_EQ(stopped["samples"], 2000);
  EXPECT_EQ(stopped["eval"], nullptr);
  EXPECT_TRUE(FileExists(JoinPath(stopped["checkpoint"].get<std::string>(), "manifest.json")));
  EXPECT_EQ(Report(Path("run/job.json"))["status"], "stopped");
  // Again: nothing is left to train, so that only the evaluation is done.
  std::vector<std::string> quicker = args;
  quicker.push_back("--set=training.eval_batch_size=2000");
  EXPECT_EQ(Run(quicker), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  const auto done = Report(Path("run/report.json"));
  EXPECT_EQ(done["status"], "done");
  EXPECT_EQ(done["samples"], 2000);
  EXPECT_EQ(done["functions"], 0);
  EXPECT_EQ(done["samples_per_second"], 0);
  EXPECT_EQ(done["eval"]["examples"], 300'000);
  EXPECT_EQ(Report(Path("run/job.json"))["status"], "done");
}

// Nobody is left who could finish what runs: it is saved as what is still to be done.
TEST_F(StoppingTest, CtrlCWithoutAWorkerSavesWhatWaits) {
  const std::string job = Job({{"epochs: 1, batch_size: 32",
                                "epochs: 10, batch_size: 4, steps_per_function: 50, "
                                "functions_in_flight: 2"}});
  std::vector<std::string> args = {"train",
                                   job,
                                   "--local",
                                   "--workers=1",
                                   "--ps=1",
                                   "--job_dir=" + Path("run"),
                                   MakePrograms(Path("gone"))};
  auto training = Start(args);
  WaitForOutput("\ntraining ");
  WaitForSteps();
  TakeWorkerAway(Path("run"), "gone");
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_THAT(Output(), HasSubstr("saved unfinished"));
  ExpectStopped(Path("run"));
  const auto stopped = Report(Path("run/report.json"));
  EXPECT_LT(stopped["samples"], 20'000);
  const auto manifest = Report(JoinPath(stopped["checkpoint"].get<std::string>(), "manifest.json"));
  EXPECT_GT(manifest["position"]["functions"].size(), 0u);
  ASSERT_EQ(::unlink(Path("gone").c_str()), 0);
  EXPECT_EQ(Run(args), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("CONTINUES"));
  EXPECT_EQ(Report(Path("run/report.json"))["samples"], 20'000);
  EXPECT_EQ(Report(Path("run/report.json"))["steps"], 5'000);
}

TEST_F(StoppingTest, CtrlCWhileAnEvaluationWaitsForAWorker) {
  auto training = Start({"train", LongEvaluation(), "--workers=1", "--ps=1",
                         "--job_dir=" + Path("run"), MakePrograms(Path("gone"))});
  WaitForOutput("\nevaluating ");
  TakeWorkerAway(Path("run"), "gone");
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  ExpectStopped(Path("run"));
}

TEST_F(StoppingTest, EvalAndPredictAreStoppedTheSame) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run")}), 0) << Output();
  const std::string job = LongEvaluation();
  for (const auto& [command, phase] :
       {std::pair("eval", "\nevaluating "), std::pair("predict", "\npredicting ")}) {
    auto running = Start(
        {command, job, "--checkpoint=" + Path("run"), absl::StrCat("--job_dir=", Path(command))});
    WaitForOutput(phase);
    MU_ASSERT_OK(running->Kill(SIGTERM));
    EXPECT_EQ(ExitOf(running.get()), 143);
    EXPECT_THAT(Output(), HasSubstr("\nstopping cleanly; again to stop at once\n"));
    ExpectStopped(Path(command));
    ExpectNoDaemonLeft(Path(command), 4);
  }
  // Nor what was written of it, under another name.
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> left, ListDirectory(Path("predict")));
  EXPECT_THAT(left, Contains(HasSubstr("report.json")));
  EXPECT_THAT(left, Not(Contains(HasSubstr("predictions.csv"))));
}

TEST_F(StoppingTest, CtrlCTwiceStopsAtOnce) {
  auto training = StartTraining();
  // A daemon that hangs holds up the clean stop, so the second signal finds the coordinator still
  // there.
  const std::vector<pid_t> pids = Daemons(Path("run"));
  ASSERT_EQ(pids.size(), 4u);
  for (const pid_t pid : pids) ASSERT_TRUE(testing::Suspend(pid));
  MU_ASSERT_OK(training->Kill(SIGINT));
  WaitForOutput("\nstopping cleanly, what was trained is saved; again to stop at once\n");
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_THAT(Output(), HasSubstr("\nstopped at once; nothing more is saved\n"));
  for (const pid_t pid : pids) ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ExpectNoDaemonLeft(Path("run"), 4);
}

// The evaluation is long, and its daemons hang.
TEST_F(StoppingTest, CtrlCTwiceOfAnEvaluationSaysNothingOfSaving) {
  ASSERT_EQ(Run({"train", Job(), "--job_dir=" + Path("run")}), 0) << Output();
  auto running =
      Start({"eval", LongEvaluation(), "--checkpoint=" + Path("run"), "--job_dir=" + Path("eval")});
  WaitForOutput("\nevaluating ");
  const std::vector<pid_t> pids = Daemons(Path("eval"));
  ASSERT_EQ(pids.size(), 4u);
  for (const pid_t pid : pids) ASSERT_TRUE(testing::Suspend(pid));
  MU_ASSERT_OK(running->Kill(SIGINT));
  WaitForOutput("\nstopping cleanly; again to stop at once\n");
  MU_ASSERT_OK(running->Kill(SIGINT));
  EXPECT_EQ(ExitOf(running.get()), 130);
  EXPECT_THAT(Output(), HasSubstr("\nstopped at once\n"));
  for (const pid_t pid : pids) ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ExpectNoDaemonLeft(Path("eval"), 4);
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

// Who gives the same command again without the folder of the run that was stopped.
TEST_F(StoppingTest, ANewRunNamesTheOneThatCanBeContinued) {
  folder_ = Path("");  // runs/ is made there
  const std::vector<std::string> train = {"train", EndlessJob(), "--workers=1", "--ps=1"};
  const auto train_and_stop = [&](const std::vector<std::string>& args) {
    auto training = Start(args);
    WaitForOutput("\ntraining ");
    MU_ASSERT_OK(training->Kill(SIGINT));
    EXPECT_EQ(ExitOf(training.get()), 130);
  };
  train_and_stop(train);
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<std::string> runs, ListDirectory(Path("runs")));
  ASSERT_THAT(runs, SizeIs(1));
  const std::string run = "runs/" + runs[0];
  EXPECT_THAT(Output(), AllOf(HasSubstr("\nto continue: "), HasSubstr(" --job_dir="),
                              HasSubstr("/" + run + "\n"), Not(HasSubstr("a new run begins"))));
  train_and_stop(train);
  EXPECT_THAT(
      Output(),
      AllOf(HasSubstr(absl::StrCat("note: a new run begins; ", run, " holds one of this job that ",
                                   "has not come to its end: --job_dir=", run, " continues it\n")),
            Not(HasSubstr("CONTINUES"))));
  std::vector<std::string> go_on = train;
  go_on.push_back("--job_dir=" + run);
  train_and_stop(go_on);
  EXPECT_THAT(Output(), AllOf(HasSubstr("CONTINUES"), Not(HasSubstr("a new run begins"))));
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
