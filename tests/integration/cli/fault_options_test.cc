// Options that act only when something fails, behind all processes: one that is dropped on its way
// looks like a slow recovery.
#include <gmock/gmock.h>

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
  // Of the daemon's last life.
  pid_t PidOf(const std::string& name) const {
    const std::string log = Log("coordinator");
    const std::regex started("started " + name + " \\(pid (\\d+)\\)");
    pid_t pid = 0;
    for (std::sregex_iterator it(log.begin(), log.end(), started), end; it != end; ++it)
      pid = std::stoi((*it)[1]);
    EXPECT_NE(pid, 0) << log;
    return pid;
  }
  void Stop(Subprocess* training) {
    MU_EXPECT_OK(training->Kill(SIGINT));
    EXPECT_EQ(ExitOf(training), 128 + SIGINT) << Output();
  }
  // What the server that was not lost does when the other one was.
  std::string WhatTheOtherDoes(const std::string& recovery) {
    const auto training = StartTraining(
        {"--local", "--workers=1", "--ps=2", "--set", "recovery=" + recovery, "--set",
         "training.steps_per_function=10", "--set", "checkpoint={every: never, every_steps: 100}"});
    const std::string manifest = Path("run/checkpoints/ckpt-00000002/manifest.json");
    EXPECT_TRUE(testing::Eventually([&] { return FileExists(manifest); })) << Output();
    ::kill(PidOf("psserver-0"), SIGKILL);
    EXPECT_TRUE(LogSays("psserver-0", "rows in generation 1")) << Log("psserver-0");
    EXPECT_TRUE(LogSays("psserver-1", "rows in generation 1")) << Log("psserver-1");
    EXPECT_THAT(Log("psserver-0"), HasSubstr("restored"));
    WaitForSteps();
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

TEST_F(FaultOptionsTest, MemberTimeoutSaysWhenASilentDaemonIsLost) {
  const auto training = StartTraining({"--local", "--workers=2", "--ps=1", "--member_timeout=1.5"});
  WaitForSteps();
  ::kill(PidOf("worker-0"), SIGSTOP);
  EXPECT_TRUE(LogSays("coordinator", "no heartbeat for 1.5s")) << Log("coordinator");
  Stop(training.get());
}

}  // namespace
}  // namespace mu
