// The trace of a whole run: what the coordinator does is in it, on the clock of the others.
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::IsSupersetOf;
using ::testing::StartsWith;
using TraceTest = testing::CliTest;

struct Interval {
  double begin = 0, end = 0;
};

TEST_F(TraceTest, ShowsWhatTheCoordinatorDoes) {
  const std::string job =
      Job({{"model:\n",
            "  eval: {format: csv, files: [data.csv], columns: [{name: user, kind: id}, "
            "{name: item, kind: id}, {name: rating, kind: number}]}\nmodel:\n"}});
  ASSERT_EQ(
      Run({"train", job, "--workers=2", "--job_dir=" + Path("run"), "--trace=" + Path("t.json")}),
      0)
      << Output();
  const nlohmann::json trace = Report(Path("t.json"));
  ASSERT_TRUE(trace.contains("traceEvents"));
  std::map<int, std::string> processes;
  std::vector<std::string> names;             // of the coordinator's spans
  std::map<std::string, Interval> intervals;  // of these, the last one
  std::map<std::string, double> open;
  std::vector<Interval> workers;
  std::map<std::string, std::set<std::string>> servers;  // names of the spans of each
  for (const auto& event : trace["traceEvents"]) {
    const std::string phase = event["ph"], name = event["name"];
    const int pid = event["pid"];
    if (phase == "M" && name == "process_name") processes[pid] = event["args"]["name"];
    if (phase == "M") continue;
    const double at = event["ts"];
    if (absl::StartsWith(processes[pid], "worker") && name == "worker.step")
      workers.push_back({at, at + event.value("dur", 0.0)});
    if (absl::StartsWith(processes[pid], "psserver")) servers[processes[pid]].insert(name);
    if (!absl::StartsWith(processes[pid], "coordinator")) continue;
    const std::string id = event.value("id", "");
    if (phase == "b") open[id] = at;
    if (phase == "b") continue;
    names.push_back(name);
    intervals[name] =
        phase == "e" ? Interval{open[id], at} : Interval{at, at + event.value("dur", 0.0)};
  }
  EXPECT_THAT(names, IsSupersetOf({"scan_files", "install", "train", "train_step", "eval_step",
                                   "evaluate", "save", "checkpoint", "checkpoint_position",
                                   "checkpoint_save", "checkpoint_manifest"}));
  EXPECT_THAT(names, Contains(StartsWith("train_step on worker ")));
  const auto within = [&](const std::string& inner, const std::string& outer) {
    return intervals[outer].begin <= intervals[inner].begin &&
           intervals[inner].end <= intervals[outer].end;
  };
  EXPECT_TRUE(within("train_step", "train"));
  EXPECT_TRUE(within("eval_step", "evaluate"));
  EXPECT_TRUE(within("checkpoint_save", "checkpoint"));
  EXPECT_LE(intervals["train"].end, intervals["evaluate"].begin);
  for (const char* server : {"psserver 0", "psserver 1"}) {
    EXPECT_THAT(servers[server], IsSupersetOf({"ps.pull", "ps.push", "ps.cut", "ps.save"}))
        << server;
  }
  // Workers' clocks are compared by a call there and back; the shortest of some of these tells it
  // well.
  const double slack_us = 2000;
  ASSERT_FALSE(workers.empty());
  for (const Interval& step : workers) {
    EXPECT_GT(step.begin, intervals["train"].begin - slack_us);
    EXPECT_LT(step.end, intervals["evaluate"].end + slack_us);
  }
}

// What a worker did until shortly before it was killed is in the sums, and how it ended is told.
TEST_F(TraceTest, AKilledWorkerIsInTheReport) {
  auto training = StartTraining({"--workers=1", "--ps=1"});
  const auto log = [&] { return ReadFile(Path("run/logs/coordinator.log")).value_or(""); };
  std::smatch started;
  const std::string before = log();
  ASSERT_TRUE(std::regex_search(before, started, std::regex("started worker-0 \\(pid (\\d+)\\)")));
  // All processes are asked every two seconds.
  ASSERT_FALSE(
      testing::Eventually([&] { return training->TryWait().has_value(); }, absl::Seconds(5)))
      << Output();
  WaitForSteps();
  ASSERT_EQ(::kill(std::stoi(started[1]), SIGKILL), 0);
  ASSERT_TRUE(testing::Eventually(
      [&] { return log().find("worker-0 started again") != std::string::npos; }));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130) << Output();
  const auto report = Report(Path("run/report.json"));
  EXPECT_GT(report["time_by_part"]["worker.step"]["count"].get<double>(),
            0.4 * report["steps"].get<double>());
  EXPECT_EQ(report["failures"].size(), 1u);
  EXPECT_THAT(log(), ContainsRegex("worker-0 \\(pid [0-9]+\\) ended: killed by SIGKILL; "
                                   "its last lines in .*worker-0.*:\n.+"));
}

}  // namespace
}  // namespace mu
