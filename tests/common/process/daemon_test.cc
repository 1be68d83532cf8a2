#include "common/process/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/common/process/fast_bins.h"
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
  app.parse(
      "--coordinator=h:1 --listen=0.0.0.0:5 --index=3 --parent_pipe_fd=7 --ready_fd=8 "
      "--die_with_parent "
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
  MU_EXPECT_OK(CheckDaemonFlags(flags, pb::ROLE_WORKER));
}

TEST(DaemonFlagsTest, OffLoopbackNeedsInsecure) {
  DaemonFlags flags;
  flags.coordinator = "somewhere:7000";
  for (const char* listen : {"127.0.0.1:0", "127.1.2.3:80", "localhost:0", "[::1]:0"}) {
    flags.listen = listen;
    MU_EXPECT_OK(CheckDaemonFlags(flags, pb::ROLE_WORKER)) << listen;
  }
  for (const char* listen : {"0.0.0.0:0", "10.0.0.1:80", "[::]:0", "example.org:1"}) {
    flags.listen = listen;
    flags.insecure = false;
    EXPECT_THAT(CheckDaemonFlags(flags, pb::ROLE_WORKER),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure")))
        << listen;
    flags.insecure = true;
    MU_EXPECT_OK(CheckDaemonFlags(flags, pb::ROLE_WORKER)) << listen;
  }
  for (const char* listen : {"", "host", "host:", "host:99999", "host:-1", ":80"}) {
    flags.listen = listen;
    EXPECT_THAT(CheckDaemonFlags(flags, pb::ROLE_WORKER),
                HasCode(absl::StatusCode::kInvalidArgument))
        << listen;
  }
}

TEST(DaemonFlagsTest, AdvertisesAnAddressThatOthersCanReach) {
  DaemonFlags flags;
  EXPECT_EQ(AdvertisedAddress(flags, "127.0.0.1:5"), "127.0.0.1:5");
  EXPECT_THAT(AdvertisedAddress(flags, "0.0.0.0:5"), ::testing::EndsWith(":5"));
  EXPECT_THAT(AdvertisedAddress(flags, "0.0.0.0:5"),
              ::testing::Not(::testing::StartsWith("0.0.0.0")));
  flags.advertise = "ps-3.svc";
  EXPECT_EQ(AdvertisedAddress(flags, "0.0.0.0:5"), "ps-3.svc:5");
  flags.advertise = "ps-3.svc:99";
  EXPECT_EQ(AdvertisedAddress(flags, "0.0.0.0:5"), "ps-3.svc:99");
  // As Kubernetes writes a pod's address: its last group is no port.
  for (const char* const pod : {"fd00::5", "fd00:10:244::5", "::1", "[fd00::5]"}) {
    flags.advertise = pod;
    const std::string bare = absl::StrCat(absl::StripSuffix(absl::StripPrefix(pod, "["), "]"));
    EXPECT_EQ(AdvertisedAddress(flags, "[::]:7000"), absl::StrCat("[", bare, "]:7000"));
    EXPECT_EQ(AdvertisedHttp(flags, "[::]:81", true), absl::StrCat("https://[", bare, "]:81"));
  }
  flags.advertise = "[fd00::5]:99";
  EXPECT_EQ(AdvertisedAddress(flags, "[::]:7000"), "[fd00::5]:99");
}

TEST(DaemonFlagsTest, AnAddressOfIpv6IsKnown) {
  EXPECT_TRUE(IsLoopback("::1"));
  EXPECT_TRUE(IsLoopback("[::1]:80"));
  EXPECT_FALSE(IsLoopback("fd00::1"));
  MU_EXPECT_OK(CheckAddress("--coordinator", "[fd00::1]:7000"));
  EXPECT_THAT(
      CheckAddress("--coordinator", "fd00::1:7000"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               ::testing::AllOf(HasSubstr("--coordinator=fd00::1:7000"), HasSubstr("[::1]:7000"))));
}

TEST(DaemonFlagsTest, RefusesWhatNobodyCouldCall) {
  DaemonFlags flags;
  flags.coordinator = "somewhere:7000";
  for (const char* const good : {"", "host", "host:7000", "10.0.0.3", "fd00::5", "[fd00::5]",
                                 "[fd00::5]:7000", "fe80::1%eth0"}) {
    flags.advertise = good;
    MU_EXPECT_OK(CheckDaemonFlags(flags, pb::ROLE_WORKER)) << good;
  }
  for (const char* const wrong : {"host:99999", "host:x", "fd00::5::7000", "caf\xE9"}) {
    flags.advertise = wrong;
    EXPECT_THAT(CheckDaemonFlags(flags, pb::ROLE_WORKER),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--advertise=")))
        << wrong;
  }
  flags.advertise.clear();
  flags.coordinator = "caf\xE9:7000";
  EXPECT_THAT(CheckDaemonFlags(flags, pb::ROLE_WORKER),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--coordinator=")));
}

// Each body below runs in a process of its own (a "threadsafe" death test starts the binary again,
// so threads of other tests do no harm) and ends it with a code that the test expects.
class DaemonProcessTest : public ::testing::Test {
 protected:
  DaemonProcessTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// A daemon with a launcher's pipe and a place to announce itself.
struct Daemon {
  explicit Daemon(bool with_parent) {
    if (pipe(ready) != 0 || pipe(life) != 0) _exit(90);
    DaemonFlags flags;
    flags.ready_fd = ready[1];
    if (with_parent) flags.parent_pipe_fd = life[0];
    auto started = DaemonProcess::Start(flags);
    if (!started.ok()) _exit(91);
    process = *std::move(started);
  }
  int WaitAndExit() { _exit(process->WaitForStop().ok() ? kExitOk : 92); }

  int ready[2], life[2];
  std::unique_ptr<DaemonProcess> process;
};

TEST_F(DaemonProcessTest, AnnouncesItsAddress) {
  EXPECT_EXIT(
      {
        Daemon daemon(false);
        char line[64] = {};
        const bool ok =
            daemon.process->AnnounceReady("host:1").ok() && read(daemon.ready[0], line, 63) > 0;
        _exit(ok && std::string(line) == "host:1\n" ? 17 : 18);
      },
      ::testing::ExitedWithCode(17), "");
}

TEST_F(DaemonProcessTest, MayOpenAsManyFilesAsTheMachineAllows) {
  EXPECT_EXIT(
      {
        rlimit limit = {};
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = 256;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(18);
        Daemon daemon(false);
        getrlimit(RLIMIT_NOFILE, &limit);
        _exit(limit.rlim_cur == limit.rlim_max ? 17 : 18);
      },
      ::testing::ExitedWithCode(17), "");
}

TEST_F(DaemonProcessTest, UsesNoFastBins) {
  testing::EnableFastBins();
  if (testing::FastBinBytesAfterManyFrees() == 0)
    GTEST_SKIP() << "this build's allocator has no fast bins";
  EXPECT_EXIT(
      {
        Daemon daemon(false);
        _exit(testing::FastBinBytesAfterManyFrees() == 0 ? 17 : 18);
      },
      ::testing::ExitedWithCode(17), "");
}

TEST_F(DaemonProcessTest, SigtermAsksForAStop) {
  EXPECT_EXIT(
      {
        Daemon daemon(false);
        kill(getpid(), SIGTERM);
        daemon.WaitAndExit();
      },
      ::testing::ExitedWithCode(kExitOk), "");
}

TEST_F(DaemonProcessTest, EndsWithItsLauncher) {
  EXPECT_EXIT(
      {
        Daemon daemon(true);
        close(daemon.life[1]);
        daemon.WaitAndExit();
      },
      ::testing::ExitedWithCode(kExitInfrastructure), "");
}

TEST_F(DaemonProcessTest, OnCtrlCTheLauncherDecides) {
  EXPECT_EXIT(
      {
        Daemon daemon(true);
        kill(getpid(), SIGINT);  // would end the process, or count as a first signal
        kill(getpid(), SIGTERM);
        daemon.WaitAndExit();
      },
      ::testing::ExitedWithCode(kExitOk), "");
}

TEST_F(DaemonProcessTest, ASecondSignalEndsAStopThatHangs) {
  EXPECT_EXIT(
      {
        Daemon daemon(false);
        kill(getpid(), SIGTERM);
        (void)daemon.process->WaitForStop();
        kill(getpid(), SIGTERM);
        while (true) pause();
      },
      ::testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(DaemonProcessTest, RequestStopCallsBackOnceAndKeepsTheFirstStatus) {
  EXPECT_EXIT(
      {
        Daemon daemon(false);
        int calls = 0;
        daemon.process->OnStop([&] { ++calls; });
        daemon.process->RequestStop(absl::UnavailableError("lost"));
        daemon.process->RequestStop(absl::OkStatus());
        const bool lost = daemon.process->WaitForStop().code() == absl::StatusCode::kUnavailable;
        daemon.process->OnStop(nullptr);
        _exit(calls == 1 && lost && daemon.process->stopping() ? 17 : 18);
      },
      ::testing::ExitedWithCode(17), "");
}

}  // namespace
}  // namespace mu
