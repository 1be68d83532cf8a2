// `coordinator soak` with real processes.
#include <gmock/gmock.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "tests/integration/cli/cli_run.h"
#include "tests/integration/cli/soak_lines.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class SoakCommandTest : public testing::CliTest {
 protected:
  std::vector<nlohmann::json> Runs() const { return testing::SoakLines(Path("record")); }
  // Long enough to be struck.
  std::string LongerJob() {
    return Job(
        {{"training: {epochs: 1,", "checkpoint: {every_steps: 500}\ntraining: {epochs: 40,"}});
  }
};

TEST_F(SoakCommandTest, TrainsWithAndWithoutPreemptions) {
  WriteText(
      "prices.yaml",
      "coordinator: {on_demand: 1}\nworker: {on_demand: 4, preemptible: 1}\nps: {on_demand: 6}\n");
  const int code =
      Run({"soak", LongerJob(), "--record=" + Path("record"), "--workers=1", "--ps=1",
           "--preempt=worker:kill:every=100ms:count=1", "--prices=" + Path("prices.yaml")});
  EXPECT_EQ(code, 0) << Output();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 2u) << Output();
  EXPECT_EQ(runs[0]["preemption"], "");
  EXPECT_EQ(runs[0]["losses"].size(), 0u);
  EXPECT_EQ(runs[1]["status"], "done");
  EXPECT_EQ(runs[1]["losses"]["worker"]["count"], 1) << Output();
  ASSERT_EQ(runs[1]["failures"].size(), 1u) << runs[1];
  EXPECT_EQ(runs[1]["failures"][0]["role"], "worker");
  EXPECT_GT(runs[1]["failures"][0]["at_seconds"].get<double>(), 0);
  EXPECT_EQ(runs[1]["failures_not_listed"], 0);
  EXPECT_EQ(runs[1]["samples"], 40 * 2000);
  EXPECT_EQ(runs[1]["samples"], runs[0]["samples"]);
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("small, with preemptions: done"), HasSubstr("2 runs, 0 flagged")));
  EXPECT_THAT(
      ReadFile(Path("record/index.html")).value_or(""),
      AllOf(HasSubstr("<h2>small</h2>"), HasSubstr("preemptible"), HasSubstr("losses by kind")));
}

TEST_F(SoakCommandTest, AStopEndsTheRunThatIsUnderWay) {
  auto soak = Start({"soak", EndlessJob(), "--record=" + Path("record"), "--workers=1", "--ps=1"});
  const std::string output = Path("record/runs/small-1/output.txt");
  EXPECT_TRUE(testing::Eventually([&] {
    return ReadFile(output).value_or("").find("\ntraining ") != std::string::npos;
  })) << ReadFile(output).value_or("nothing");
  MU_EXPECT_OK(soak->Kill(SIGINT));
  EXPECT_EQ(ExitOf(soak.get()), 128 + SIGINT) << Output();
  const auto runs = Runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0]["status"], "stopped");
  EXPECT_FALSE(FileExists(Path("record/runs/small-1")));
}

// The `train` processes that train into this folder.
std::vector<pid_t> TrainProcesses(const std::string& job_dir) {
  std::vector<pid_t> pids;
  for (const std::string& name : ListDirectory("/proc").value_or(std::vector<std::string>{})) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(name, &pid)) continue;
    // Empty if it has ended and nobody has waited for it.
    const auto command = ReadFile(absl::StrCat("/proc/", pid, "/cmdline"));
    if (command.value_or("").find("--job_dir=" + job_dir) != std::string::npos) pids.push_back(pid);
  }
  return pids;
}

// Whatever ends it, also what it cannot pass on. Daemons that hang hold up a clean stop: the run
// would still use its folder when the next soak begins.
TEST_F(SoakCommandTest, ARunDoesNotOutliveItsSoak) {
  for (const bool twice : {true, false}) {
    const std::string record = Path(twice ? "twice" : "killed");
    auto soak = Start({"soak", EndlessJob(), "--record=" + record, "--workers=1", "--ps=1"});
    const std::string output = record + "/runs/small-1/output.txt";
    EXPECT_TRUE(testing::Eventually([&] {
      return ReadFile(output).value_or("").find("\ntraining ") != std::string::npos;
    })) << ReadFile(output).value_or("nothing");
    const std::string job_dir = record + "/runs/small-1/run";
    EXPECT_THAT(TrainProcesses(job_dir), SizeIs(1));
    const std::vector<pid_t> daemons = Daemons(job_dir);
    for (const pid_t pid : daemons) ASSERT_TRUE(testing::Suspend(pid));
    if (twice) {
      MU_EXPECT_OK(soak->Kill(SIGINT));
      EXPECT_TRUE(testing::Eventually(
          [&] { return Output().find("stopping cleanly") != std::string::npos; }));
    }
    MU_EXPECT_OK(soak->Kill(twice ? SIGINT : SIGKILL));
    ExitOf(soak.get());
    EXPECT_TRUE(testing::Eventually([&] { return TrainProcesses(job_dir).empty(); }));
    for (const pid_t pid : TrainProcesses(job_dir)) ::kill(pid, SIGKILL);  // nobody else would
    for (const pid_t pid : daemons)
      ::kill(pid, SIGCONT);  // unless the kernel has: no parent is left
    ExpectNoDaemonLeft(job_dir, 2);
    EXPECT_THAT(ReadFile(output).value_or(""),
                AllOf(HasSubstr("the program that started this one has ended"),
                      Not(HasSubstr("to continue: "))));
    EXPECT_TRUE(testing::SoakLines(record).empty());
  }
}

TEST_F(SoakCommandTest, WhatIsWrongIsToldBeforeAnythingStarts) {
  const std::string job = Job();
  EXPECT_EQ(Run({"soak", job, job, "--record=" + Path("record"), "--preempt=worker:eat:every=1s",
                 "--for=soon", "--metric=beauty", "--prices=" + Path("none.yaml"),
                 "--preempt_command=true"}),
            2);
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("another job is called small, too"), HasSubstr("`eat`"),
                    HasSubstr("`soon` is no time"), HasSubstr("no metric `beauty`"),
                    HasSubstr("none.yaml"), HasSubstr("is for the daemons of a cluster")));
  EXPECT_FALSE(FileExists(Path("record")));
}

// The job has no data to evaluate with, so none of its runs has the metric.
TEST_F(SoakCommandTest, SaysWhatIsNotJudged) {
  EXPECT_EQ(Run({"soak", Job(), "--record=" + Path("record"), "--workers=1", "--ps=1",
                 "--preempt=worker:kill:every=1h", "--metric=rmse", "--set=training.max_steps=30"}),
            1)
      << Output();
  EXPECT_THAT(Output(), AllOf(HasSubstr("no value of rmse"), HasSubstr("2 flagged")));
  for (const nlohmann::json& run : Runs())
    EXPECT_EQ(run["exact"], false) << "which batches are the first 30 depends on who is faster";
}

TEST_F(SoakCommandTest, AJobThatIsWrongIsNotSoaked) {
  WriteText("data.csv", "user,item,stars\n1,2,3\n");  // the job file alone does not show it
  EXPECT_EQ(Run({"soak", Job(), "--record=" + Path("record")}), 2);
  EXPECT_THAT(Output(), AllOf(HasSubstr("the job is wrong"), HasSubstr("rating")));
  EXPECT_TRUE(Runs().empty());
}

}  // namespace
}  // namespace mu
