// Whoever collects lines of JSON from standard error can read all that comes there when a run is
// stopped. Of errors and notes: bad_input_test.cc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_split.h"
#include "common/env/unique_fd.h"
#include "tests/integration/cli/cli_run.h"
#include "tests/testing/suspend.h"

namespace mu {
namespace {

using ::testing::Contains;

class JsonLogTest : public testing::CliTest {
 protected:
  // Standard error goes to a file of its own. `pipe` is what --parent_pipe_fd=3 reads.
  std::unique_ptr<Subprocess> StartLogging(const std::string& pipe,
                                           std::vector<std::string> more = {}) {
    within_ = {"sh", "-c", "pipe=$1; shift; exec \"$@\" 2>>\"$0\" 3<\"$pipe\"", Path("errors"),
               pipe};
    more.insert(more.end(), {"--verbose", "--log_format=json"});
    std::vector<std::string> args = {"train", EndlessJob(), "--job_dir=" + Path("run")};
    args.insert(args.end(), more.begin(), more.end());
    auto training = Start(std::move(args));
    within_.clear();
    return training;
  }
  void WaitForTraining() {
    EXPECT_TRUE(testing::Eventually([&] {
      return Output().find("\ntraining ") != std::string::npos;
    })) << Output();
  }
  // What the log says; all of standard error is such lines.
  std::vector<std::string> Messages() {
    std::vector<std::string> messages;
    const std::string text = ReadFile(Path("errors")).value_or("");
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      const auto json =
          nlohmann::json::parse(std::string(line), nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(json.is_object() && json.contains("message")) << line;
      if (json.is_object()) messages.push_back(json.value("message", ""));
    }
    return messages;
  }
};

TEST_F(JsonLogTest, ACleanStop) {
  const auto training = StartLogging("/dev/null");
  WaitForTraining();
  MU_ASSERT_OK(training->Kill(SIGTERM));
  EXPECT_EQ(ExitOf(training.get()), 143);
  EXPECT_THAT(Messages(),
              Contains("stopping cleanly, what was trained is saved; again to stop at once"));
}

TEST_F(JsonLogTest, AStopAtOnce) {
  const auto training = StartLogging("/dev/null");
  WaitForTraining();
  // Daemons that hang hold up the clean stop.
  const std::vector<pid_t> pids = Daemons(Path("run"));
  for (const pid_t pid : pids) ASSERT_TRUE(testing::Suspend(pid));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_TRUE(testing::Eventually([&] {
    const auto text = ReadFile(Path("errors"));
    return text.value_or("").find("stopping cleanly") != std::string::npos;
  }));
  MU_ASSERT_OK(training->Kill(SIGINT));
  EXPECT_EQ(ExitOf(training.get()), 130);
  EXPECT_THAT(Messages(), Contains("stopped at once; nothing more is saved"));
  for (const pid_t pid : pids) ASSERT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(JsonLogTest, TheEndOfTheProgramThatStartedIt) {
  const std::string pipe = Path("parent");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto training = StartLogging(pipe, {"--parent_pipe_fd=3"});
  UniqueFd parent;
  ASSERT_TRUE(testing::Eventually([&] {
    parent.Reset(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return parent.valid();
  }));
  WaitForTraining();
  parent.Reset();
  EXPECT_EQ(ExitOf(training.get()), 4);
  EXPECT_THAT(Messages(), Contains("stopped at once: the program that started this one has ended"));
  for (const pid_t pid : Daemons(Path("run")))
    EXPECT_TRUE(testing::Eventually([&] { return !testing::ProcessRuns(pid); })) << pid;
}

}  // namespace
}  // namespace mu
