#include "common/client/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(DaemonFlagsTest, ParsesWhatLaunchersPass) {
  CLI::App app;
  DaemonFlags flags;
  AddDaemonFlags(&app, &flags);
  app.parse("--coordinator=h:1 --listen=0.0.0.0:5 --index=3 --parent_pipe_fd=7 --ready_fd=8 --die_with_parent "
            "--log_file=x --insecure --orphan_timeout=2.5",
            /*program_name_included=*/false);
  EXPECT_EQ(flags.coordinator, "h:1");
  EXPECT_EQ(flags.listen, "0.0.0.0:5");
  EXPECT_EQ(flags.index, 3);
  EXPECT_EQ(flags.parent_pipe_fd, 7);
  EXPECT_EQ(flags.ready_fd, 8);
  EXPECT_TRUE(flags.die_with_parent);
  EXPECT_TRUE(flags.insecure);
  EXPECT_EQ(flags.orphan_timeout(), absl::Milliseconds(2500));
  MU_EXPECT_OK(CheckDaemonFlags(flags));
}

TEST(DaemonFlagsTest, OffLoopbackNeedsInsecure) {
  DaemonFlags flags;
  flags.coordinator = "somewhere:7000";
  for (const char* listen : {"127.0.0.1:0", "127.1.2.3:80", "localhost:0", "[::1]:0"}) {
    flags.listen = listen;
    MU_EXPECT_OK(CheckDaemonFlags(flags)) << listen;
  }
  for (const char* listen : {"0.0.0.0:0", "10.0.0.1:80", "[::]:0", "example.org:1"}) {
    flags.listen = listen;
    flags.insecure = false;
    EXPECT_THAT(CheckDaemonFlags(flags), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure"))) << listen;
    flags.insecure = true;
    MU_EXPECT_OK(CheckDaemonFlags(flags)) << listen;
  }
  for (const char* listen : {"", "host", "host:", "host:99999", "host:-1", ":80"}) {
    flags.listen = listen;
    EXPECT_THAT(CheckDaemonFlags(flags), HasCode(absl::StatusCode::kInvalidArgument)) << listen;
  }
}

TEST(DaemonFlagsTest, AdvertisesAnAddressThatOthersCanReach) {
  DaemonFlags flags;
  EXPECT_EQ(AdvertisedAddress(flags, "127.0.0.1:5"), "127.0.0.1:5");
  EXPECT_THAT(AdvertisedAddress(flags, "0.0.0.0:5"), ::testing::EndsWith(":5"));
  EXPECT_THAT(AdvertisedAddress(flags, "0.0.0.0:5"), ::testing::Not(::testing::StartsWith("0.0.0.0")));
  flags.advertise = "ps-3.svc";
  EXPECT_EQ(AdvertisedAddress(flags, "0.0.0.0:5"), "ps-3.svc:5");
  flags.advertise = "ps-3.svc:99";
  EXPECT_EQ(AdvertisedAddress(flags, "0.0.0.0:5"), "ps-3.svc:99");
}

// Runs `body` in a child process, of which DaemonProcess takes hold; gives its wait status to `wait`.
template <typename Body, typename Parent>
int InChild(Body body, Parent parent) {
  int ready[2], life[2];
  EXPECT_EQ(pipe(ready), 0);
  EXPECT_EQ(pipe(life), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(ready[0]);
    close(life[1]);
    _exit(body(ready[1], life[0]));
  }
  close(ready[1]);
  close(life[0]);
  char line[64] = {};
  EXPECT_GT(read(ready[0], line, sizeof(line) - 1), 0);
  EXPECT_STREQ(line, "host:1\n");
  parent(child, life[1]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(ready[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int Daemon(int ready_fd, int parent_pipe_fd) {
  DaemonFlags flags;
  flags.ready_fd = ready_fd;
  flags.parent_pipe_fd = parent_pipe_fd;
  auto process = DaemonProcess::Start(flags);
  if (!process.ok() || !(*process)->AnnounceReady("host:1").ok()) return 99;
  return (*process)->WaitForStop().ok() ? kExitOk : kExitInfrastructure;
}

TEST(DaemonProcessTest, SigtermAsksForAStop) {
  EXPECT_EQ(InChild([](int ready, int) { return Daemon(ready, -1); }, [](pid_t child, int) { kill(child, SIGTERM); }), 0);
}

TEST(DaemonProcessTest, EndsWithItsLauncher) {
  EXPECT_EQ(InChild(Daemon, [](pid_t, int life) { close(life); }), kExitInfrastructure);
}

TEST(DaemonProcessTest, OnCtrlCTheLauncherDecides) {
  EXPECT_EQ(InChild(Daemon,
                    [](pid_t child, int) {
                      kill(child, SIGINT);
                      kill(child, SIGTERM);
                    }),
            0);
}

TEST(DaemonProcessTest, ASecondSignalEndsAStopThatHangs) {
  const int code = InChild(
      [](int ready, int) {
        DaemonFlags flags;
        flags.ready_fd = ready;
        auto process = DaemonProcess::Start(flags);
        (void)(*process)->AnnounceReady("host:1");
        (void)(*process)->WaitForStop();
        kill(getpid(), SIGTERM);
        while (true) pause();
        return 0;
      },
      [](pid_t child, int) { kill(child, SIGTERM); });
  EXPECT_EQ(code, 128 + SIGTERM);
}

TEST(DaemonProcessTest, RequestStopCallsBackOnceAndKeepsTheFirstStatus) {
  const int code = InChild(
      [](int ready, int) {
        DaemonFlags flags;
        flags.ready_fd = ready;
        auto process = DaemonProcess::Start(flags);
        (void)(*process)->AnnounceReady("host:1");
        int calls = 0;
        (*process)->OnStop([&] { ++calls; });
        (*process)->RequestStop(absl::UnavailableError("lost"));
        (*process)->RequestStop(absl::OkStatus());
        const bool lost = (*process)->WaitForStop().code() == absl::StatusCode::kUnavailable;
        (*process)->OnStop(nullptr);
        return calls == 1 && lost && (*process)->stopping() ? 17 : 18;
      },
      [](pid_t, int) {});
  EXPECT_EQ(code, 17);
}

}  // namespace
}  // namespace mu
