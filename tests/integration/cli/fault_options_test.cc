// Options that act only when something fails, behind all processes: one that is dropped on its way
// looks like a slow recovery.
#include <gmock/gmock.h>

#include <set>

#include "absl/strings/match.h"
#include "tests/integration/cli/cli_run.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FaultOptionsTest : public testing::CliTest {
 protected:
  std::string Log(const std::string& name) const {
    return ReadFile(Path(absl::StrCat("run/logs/", name, ".log"))).value_or("");
  }
  bool LogSays(const std::string& name, const std::string& text) const {
    return testing::Eventually([&] { return absl::StrContains(Log(name), text); });
  }
  // To the daemon's first life.
  void Signal(const std::string& name, int signal) const {
    const std::string log = Log("coordinator");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(log, found, std::regex("started " + name + " \\(pid (\\d+)\\)")))
        << log;
    ASSERT_EQ(::kill(std::stoi(found[1]), signal), 0);
  }
  void Stop(Subprocess* training) {
    MU_EXPECT_OK(training->Kill(SIGINT));
    EXPECT_EQ(ExitOf(training), 128 + SIGINT) << Output();
  }
  // What the server that was not lost does when the other one was.
  std::string WhatTheOtherDoes(const std::string& recovery) {
    const auto training =
        StartTraining({"--local", "--workers=1", "--ps=2", "--set", "recovery=" + recovery, "--set",
                       "training.steps_per_function=10", "--set",
                       "checkpoint={every: never, every_steps: 100, keep: 0}"});
    const std::string manifest = Path("run/checkpoints/ckpt-00000002/manifest.json");
    EXPECT_TRUE(testing::Eventually([&] { return FileExists(manifest); })) << Output();
    Signal("psserver-0", SIGKILL);
    EXPECT_TRUE(LogSays("psserver-0", " rows in generation ")) << Log("psserver-0");
    EXPECT_TRUE(LogSays("psserver-1", " rows in generation ")) << Log("psserver-1");
    EXPECT_THAT(Log("psserver-0"), HasSubstr("restored"));
    Stop(training.get());
    return Log("psserver-1");
  }
};

TEST_F(FaultOptionsTest, RecoveryOfAllTakesEveryServerBack) {
  const std::string log = WhatTheOtherDoes("all");
  EXPECT_THAT(log, HasSubstr("restored"));
  EXPECT_THAT(log, Not(HasSubstr("keeps")));
}

TEST_F(FaultOptionsTest, RecoveryOfShardsLeavesTheOtherServersAlone) {
  const std::string log = WhatTheOtherDoes("shard");
  EXPECT_THAT(log, HasSubstr("keeps"));
  EXPECT_THAT(log, Not(HasSubstr("restored")));
}

TEST_F(FaultOptionsTest, ThatStepsRunAgainAfterALostServerIsShown) {
  const auto training =
      StartTraining({"--local", "--workers=1", "--ps=1", "--set", "training.steps_per_function=10",
                     "--set", "checkpoint.every=never"});
  WaitForSteps();
  Signal("psserver-0", SIGKILL);
  const std::regex note(
      "note: psserver 0 was lost \\(\\w+\\) after \\S+ s and replaced \\S+ s later, restored from "
      "[^\n]+; \\d+ steps run again\n");
  EXPECT_TRUE(testing::Eventually([&] { return std::regex_search(Output(), note); })) << Output();
  Stop(training.get());
}

TEST_F(FaultOptionsTest, MemberTimeoutSaysWhenASilentDaemonIsLost) {
  const auto training = StartTraining({"--local", "--workers=2", "--ps=1", "--member_timeout=1.5"});
  WaitForSteps();
  Signal("worker-0", SIGSTOP);
  EXPECT_TRUE(LogSays("coordinator", "no heartbeat for 1.5s")) << Log("coordinator");
  Stop(training.get());
}

// Each action on each role, as a user would try them on a job.
TEST_F(FaultOptionsTest, ChaosOfEveryKind) {
  const std::string job =
      Job({{"epochs: 1, batch_size: 32", "epochs: 20, batch_size: 4, steps_per_function: 20"},
           {"training:", "checkpoint: {every: 1s}\ntraining:"}});
  EXPECT_EQ(Run({"train", job, "--local", "--workers=3", "--ps=2", "--job_dir=" + Path("run"),
                 "--member_timeout=1",
                 "--chaos=worker:kill:every=1500ms,ps:kill:every=300ms:count=1,"
                 "worker:hang:every=700ms:for=1500ms:count=4,ps:hang:every=800ms:for=2s:count=1,"
                 "worker:drain:every=700ms,ps:drain:every=1300ms:count=2,seed=7"}),
            0)
      << Output();
  const auto report = Report(Path("run/report.json"));
  EXPECT_EQ(report["samples"], 20 * 2000);
  EXPECT_EQ(report["steps"], 20 * 500);
  std::set<std::string> kinds;
  for (const auto& failure : report["failures"])
    kinds.insert(failure["role"].get<std::string>() + " " + failure["kind"].get<std::string>());
  // Each rule has cost what it is for. (The servers' rules strike one after the other, within the
  // time that the hung server alone takes.)
  EXPECT_THAT(kinds, ::testing::IsSupersetOf(
                         {"worker left", "psserver left", "psserver silent", "psserver died"}))
      << Output();
  // A worker that is stopped may be noticed by its heartbeats or by its stream, and one that is
  // killed by its process or by its stream.
  EXPECT_GE(
      kinds.count("worker silent") + kinds.count("worker died") + kinds.count("worker unreachable"),
      2u)
      << Output();
}

}  // namespace
}  // namespace mu
