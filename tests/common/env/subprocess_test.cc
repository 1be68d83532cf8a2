#include "common/env/subprocess.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/env/unique_fd.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

SubprocessOptions Shell(const std::string& script) {
  return {.path = "/bin/sh", .args = {"-c", script, "sh"}};
}

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Subprocess, ExitCodesAndSignalsAsText) {
  MU_ASSERT_OK_AND_ASSIGN(auto good, Subprocess::Start(Shell("exit 0")));
  EXPECT_TRUE(good->Wait().ok());
  MU_ASSERT_OK_AND_ASSIGN(auto bad, Subprocess::Start(Shell("exit 4")));
  EXPECT_EQ(bad->Wait().ToString(), "exit code 4");
  MU_ASSERT_OK_AND_ASSIGN(auto killed, Subprocess::Start(Shell("exec sleep 1000")));
  EXPECT_FALSE(killed->TryWait().has_value());
  EXPECT_FALSE(killed->WaitFor(absl::Milliseconds(1)).has_value());
  MU_EXPECT_OK(killed->Kill(SIGKILL));
  EXPECT_EQ(killed->Wait().ToString(), "killed by SIGKILL");
  EXPECT_EQ(killed->TryWait()->signal, SIGKILL);
  EXPECT_THAT(killed->Kill(SIGTERM),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("killed by SIGKILL")));
}

TEST(Subprocess, ProgramsThatCannotRun) {
  EXPECT_THAT(Subprocess::Start({.path = "/no/such/program"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/program")));
  EXPECT_THAT(Subprocess::Start({.path = "/etc/passwd"}),
              HasCode(absl::StatusCode::kPermissionDenied));
  EXPECT_THAT(Subprocess::Start({.path = "/bin/true", .output_file = "/no/such/folder/log"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder/log")));
}

TEST(Subprocess, OutputIsAppendedToTheFile) {
  std::string path = ::testing::TempDir() + "subprocess_output_XXXXXX";
  const UniqueFd file(mkstemp(path.data()));
  for (const char* script : {"echo one; echo two >&2", "echo $WORD; cat"}) {
    SubprocessOptions options = Shell(script);
    options.output_file = path;
    options.environment = {"WORD=three"};
    MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
    EXPECT_TRUE(child->Wait().ok());  // cat ends: the input is empty
  }
  EXPECT_EQ(Contents(path), "one\ntwo\nthree\n");
  std::remove(path.c_str());
}

// Also in a shell that takes the last of two.
TEST(Subprocess, AVariableTakesThePlaceOfTheParents) {
  std::string path = ::testing::TempDir() + "subprocess_environment_XXXXXX";
  const UniqueFd file(mkstemp(path.data()));
  ASSERT_EQ(setenv("MUSTER_TEST_WORD", "outer", 1), 0);
  ASSERT_EQ(setenv("MUSTER_TEST_WORDS", "stays", 1), 0);
  SubprocessOptions options =
      Shell("echo $MUSTER_TEST_WORD $MUSTER_TEST_WORDS; env | grep -c ^MUSTER_TEST_WORD=");
  options.output_file = path;
  options.environment = {"MUSTER_TEST_WORD=inner"};
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
  EXPECT_TRUE(child->Wait().ok());
  unsetenv("MUSTER_TEST_WORD");
  unsetenv("MUSTER_TEST_WORDS");
  EXPECT_EQ(Contents(path), "inner stays\n1\n");
  std::remove(path.c_str());
}

TEST(Subprocess, ReadyLineArrives) {
  SubprocessOptions options = Shell("printf 'address ' >&3; echo 127.0.0.1:5 >&3; exec sleep 1000");
  options.ready_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
  EXPECT_EQ(child->ReadReadyLine(absl::Seconds(20)).value(), "address 127.0.0.1:5");
  EXPECT_EQ(child->ReadReadyLine(absl::Seconds(20)).value(), "address 127.0.0.1:5");
}

TEST(Subprocess, ChildThatEndsOrHangsBeforeItIsReady) {
  SubprocessOptions options = Shell("exit 2");
  options.ready_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(auto ended, Subprocess::Start(options));
  EXPECT_THAT(ended->ReadReadyLine(absl::Seconds(20)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("exit code 2")));
  options = Shell("exec sleep 1000");
  options.ready_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(auto hangs, Subprocess::Start(options));
  EXPECT_THAT(hangs->ReadReadyLine(absl::Milliseconds(20)),
              HasCode(absl::StatusCode::kDeadlineExceeded));
  MU_ASSERT_OK_AND_ASSIGN(auto without, Subprocess::Start(Shell("exit 0")));
  EXPECT_THAT(without->ReadReadyLine(absl::Seconds(1)),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST(Subprocess, PipesAreFlagsAndNothingElseIsInherited) {
  // A descriptor without close-on-exec, as a library might leave it.
  const UniqueFd leaked(dup(STDERR_FILENO));
  SubprocessOptions options = Shell(
      "test -e /proc/self/fd/5 && exit 1; ls /proc/$$/fd | tr '\\n' ' ' >&3; echo \"$@\" >&3; exec "
      "sleep 1000");
  options.ready_pipe = options.parent_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(const std::string line, child->ReadReadyLine(absl::Seconds(20)));
  EXPECT_THAT(line, HasSubstr("0 1 2 3 4"));
  EXPECT_THAT(line, HasSubstr("--ready_fd=3 --parent_pipe_fd=4"));
  EXPECT_EQ(line.find(" " + std::to_string(leaked.get()) + " ") != std::string::npos,
            leaked.get() <= 4);
}

TEST(Subprocess, OnExitIsCalledOnce) {
  Notification called;
  int calls = 0;
  ExitStatus seen;
  SubprocessOptions options = Shell("exit 3");
  options.on_exit = [&](pid_t, const ExitStatus& status) {
    ++calls;
    seen = status;
    called.Notify();
  };
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
  called.Wait();
  child.reset();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen.code, 3);
}

TEST(Subprocess, DestructorKills) {
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(Shell("trap '' TERM; exec sleep 1000")));
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(Subprocess, ManyThreadsStartChildren) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        SubprocessOptions options = Shell("echo ready >&3; exit " + std::to_string(t));
        options.ready_pipe = true;
        auto child = Subprocess::Start(options);
        if (child.ok() && (*child)->ReadReadyLine(absl::Seconds(20)).ok() &&
            (*child)->Wait().code == t)
          ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 40);
}

TEST(Subprocess, AnnounceReadyWritesOneLine) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  const UniqueFd read_end(fds[0]);
  MU_EXPECT_OK(AnnounceReady(fds[1], "127.0.0.1:77"));
  char bytes[64];
  EXPECT_EQ(read(read_end.get(), bytes, sizeof(bytes)), 13);
  EXPECT_EQ(read(read_end.get(), bytes, sizeof(bytes)), 0);  // and closes
  MU_EXPECT_OK(AnnounceReady(-1, "nobody"));
}

TEST(Subprocess, WatchParentHearsTheEnd) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  Notification gone;
  WatchParent(fds[0], [&] { gone.Notify(); });
  EXPECT_FALSE(gone.HasBeenNotified());
  close(fds[1]);
  gone.Wait();
}

// Not a test of its own: the parent process of the next one.
TEST(SubprocessParent, DISABLED_StartsAChildAndStays) {
  // The child stands for a daemon: it runs until its parent pipe says that nobody is there.
  SubprocessOptions options = Shell("cat <&3 >/dev/null; exit 7");
  options.parent_pipe = true;
  MU_ASSERT_OK_AND_ASSIGN(auto child, Subprocess::Start(options));
  MU_ASSERT_OK(AnnounceReady(3, std::to_string(child->pid())));
  while (true) pause();
}

// A parent that is killed takes its children along, whatever it was doing.
TEST(Subprocess, KilledParentLeavesNoChild) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1),
            0);  // orphans come to this process, which sees them end
  SubprocessOptions options = {
      .path = "/proc/self/exe",
      .args = {"--gtest_filter=SubprocessParent.*", "--gtest_also_run_disabled_tests"},
      .output_file = "/dev/null",
      .ready_pipe = true};
  MU_ASSERT_OK_AND_ASSIGN(auto parent, Subprocess::Start(options));
  MU_ASSERT_OK_AND_ASSIGN(const std::string line, parent->ReadReadyLine(absl::Seconds(20)));
  const pid_t child = std::stoi(line);
  ASSERT_GT(child, 0);
  EXPECT_EQ(kill(child, 0), 0);
  MU_ASSERT_OK(parent->Kill(SIGKILL));
  EXPECT_EQ(parent->Wait().signal, SIGKILL);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace
}  // namespace mu
