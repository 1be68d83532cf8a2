#include "common/obs/log.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/signal_stack.h"
#include "common/base/status.h"
#include "tests/testing/matchers.h"

namespace mu {

int* volatile g_nowhere = nullptr;
[[gnu::noinline]] void WriteToNowhere() { *g_nowhere = 1; }

// The stack's next frame is at no address that can be read.
#if defined(__x86_64__)
[[gnu::noinline]] void CrashWithoutAStack() {
  asm volatile("movq $16, %%rbp\n\tmovl $0, 0" ::: "memory");
}
#endif

// Deeper than any stack is: each call has a frame of its own, and none is the last of another.
volatile int g_deepest = 1 << 28;
[[gnu::noinline]] int Overflow(int depth) {
  volatile int frame[256];
  frame[depth % 256] = depth == g_deepest ? 0 : Overflow(depth + 1);
  return frame[depth % 256];
}

[[gnu::noinline]] void CrashInACall(void (*how)()) {
  how();
  asm volatile("");  // it returns here
}

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Contents(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Log : ::testing::Test {
  ~Log() override {
    std::remove(path.c_str());
    MU_EXPECT_OK(InitLogging({.crash_handler = false}));
  }
  const std::string path =
      absl::StrCat(::testing::TempDir(), "log_test_",
                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Log, ControlCharactersAreEscaped) {
  MU_ASSERT_OK(InitLogging({.file = path, .to_stderr = false, .crash_handler = false}));
  MU_LOG(WARN, "{}", std::string("a\x1b[2J\x07z"));
  FlushLog();
  EXPECT_THAT(Contents(path), HasSubstr("a\\x1b[2J\\x07z"));
  EXPECT_THAT(Contents(path), Not(HasSubstr("\x1b")));
}

TEST_F(Log, LinesGoToTheFileWithRoleAndFormat) {
  MU_ASSERT_OK(
      InitLogging({.role = "worker 3", .file = path, .to_stderr = false, .crash_handler = false}));
  MU_LOG(INFO, "pulled {} rows in {}", 12, absl::Milliseconds(5));
  MU_LOG(WARN, "{} and {}", absl::string_view("text"), absl::NotFoundError("no file"));
  MU_LOG(ERROR, "of {}", WorkerId(4));
  MU_LOG(DEBUG, "not this");
  const std::string text = Contents(path);
  EXPECT_THAT(text, HasSubstr(" I worker 3: pulled 12 rows in 5ms\n"));
  EXPECT_THAT(text, HasSubstr(" W worker 3: text and NOT_FOUND: no file [log_test.cc:"));
  EXPECT_THAT(text, HasSubstr(" E worker 3: of 4 [log_test.cc:"));
  EXPECT_THAT(text, Not(HasSubstr("not this")));
}

// Their bytes are no text.
TEST_F(Log, DetailsOfErrorsStayOut) {
  MU_ASSERT_OK(InitLogging({.file = path, .to_stderr = false, .crash_handler = false}));
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_index(3);
  const absl::Status status = WithDetail(absl::ResourceExhaustedError("the disk is full"), detail);
  MU_LOG(ERROR, "not saved: {}", status);
  EXPECT_THAT(Contents(path), HasSubstr(" not saved: RESOURCE_EXHAUSTED: the disk is full [log_"));
}

TEST_F(Log, LinesOfJsonSayWhoseTheyAre) {
  MU_ASSERT_OK(InitLogging({.role = "worker 3",
                            .file = path,
                            .to_stderr = false,
                            .format = LogFormat::kJson,
                            .crash_handler = false}));
  MU_LOG(INFO, "a \"quoted\" line\nand more");
  SetLogIdentity({.index = 4, .job = "movies", .epoch = 2});
  MU_LOG(WARN, "bytes that are no text: \xff");
  SetLogIdentity({});
  std::istringstream lines(Contents(path));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  auto object = nlohmann::json::parse(line);
  EXPECT_THAT(object["time"].get<std::string>(),
              ::testing::MatchesRegex("20..-..-..T..:..:..[.]...Z"));
  object.erase("time");
  EXPECT_EQ(object, nlohmann::json({{"level", "info"},
                                    {"role", "worker"},
                                    {"message", "a \"quoted\" line\nand more"}}));
  ASSERT_TRUE(std::getline(lines, line));
  object = nlohmann::json::parse(line);
  EXPECT_THAT(object["source"].get<std::string>(), HasSubstr("log_test.cc:"));
  object.erase("time");
  object.erase("source");
  EXPECT_EQ(object, nlohmann::json({{"level", "warn"},
                                    {"role", "worker"},
                                    {"index", 4},
                                    {"job", "movies"},
                                    {"epoch", 2},
                                    {"message", "bytes that are no text: \xEF\xBF\xBD"}}));
  EXPECT_FALSE(std::getline(lines, line));
}

TEST_F(Log, SecondInitAppendsAndLevelsHold) {
  for (const LogSeverity level : {LogSeverity::DEBUG, LogSeverity::ERROR}) {
    MU_ASSERT_OK(
        InitLogging({.file = path, .level = level, .to_stderr = false, .crash_handler = false}));
    MU_LOG(DEBUG, "fine {}", 1);
    MU_LOG(WARN, "warned {}", 2);
    MU_LOG(ERROR, "failed {}", 3);
  }
  FlushLog();
  const std::vector<std::string> lines = absl::StrSplit(Contents(path), '\n');
  EXPECT_EQ(lines.size(), 3u + 1u + 1u);
}

TEST_F(Log, ArgumentsOfSilentLinesAreNotEvaluated) {
  MU_ASSERT_OK(InitLogging({.level = LogSeverity::OFF, .crash_handler = false}));
  int evaluated = 0;
  MU_LOG(ERROR, "{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST_F(Log, FileThatCannotBeWrittenIsSaid) {
  EXPECT_THAT(
      InitLogging({.file = "/no/such/folder/x.log", .to_stderr = false, .crash_handler = false}),
      testing::StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/folder/x.log")));
}

TEST_F(Log, LastLinesAreKept) {
  MU_ASSERT_OK(InitLogging({.file = path, .to_stderr = false, .crash_handler = false}));
  for (int i = 0; i < 2 * kLogRingLines; ++i) MU_LOG(INFO, "line {}", i);
  const std::vector<std::string> lines = LastLogLines(3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[2], HasSubstr(absl::StrCat("I line ", 2 * kLogRingLines - 1)));
  EXPECT_THAT(lines[0], HasSubstr(absl::StrCat("I line ", 2 * kLogRingLines - 3)));
  EXPECT_EQ(LastLogLines().size(), static_cast<size_t>(kLogRingLines));
  EXPECT_EQ(LastLogLines(100000).size(), static_cast<size_t>(kLogRingLines));
  EXPECT_TRUE(LastLogLines(0).empty());
  MU_LOG(INFO, "{}",
         std::string(5000, 'x'));  // longer than the ring's slots: cut there, whole in the file
  EXPECT_LT(LastLogLines(1)[0].size(), 600u);
  EXPECT_THAT(Contents(path), HasSubstr(std::string(5000, 'x')));
}

TEST_F(Log, ManyThreads) {
  MU_ASSERT_OK(InitLogging({.file = path, .to_stderr = false, .crash_handler = false}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) MU_LOG(INFO, "whole line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  int lines = 0;
  const std::string text = Contents(path);
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    EXPECT_THAT(std::string(line), ::testing::EndsWith("I whole line"));
    ++lines;
  }
  EXPECT_EQ(lines, 400);
}

// What the program was doing, whoever raises the signal: the processor, or a library.
TEST_F(Log, CrashPrintsTheStack) {
  const auto crash = [](void (*how)()) {
    InitLogging({.role = "psserver 1"}).IgnoreError();
    SetLogSeverity(LogSeverity::OFF);
    LogLine(LogSeverity::INFO, __FILE__, __LINE__, "the last words");
    CrashInACall(how);
  };
  EXPECT_EXIT(crash(WriteToNowhere), ::testing::KilledBySignal(SIGSEGV),
              "fatal signal SEGV at:\n  @ program[+]0x[0-9a-f]+  mu::WriteToNowhere\\(\\)\n"
              "  @ program[+]0x[0-9a-f]+  mu::CrashInACall\\(\\)\n(.|\n)*"
              "fatal signal SEGV; the last lines of the log:\n(.|\n)*the last words");
  EXPECT_EXIT(crash(std::abort), ::testing::KilledBySignal(SIGABRT),
              "fatal signal ABRT at:\n(  @ 0x[0-9a-f]+  .*\n)+"
              "  @ program[+]0x[0-9a-f]+  mu::CrashInACall\\(\\)\n(.|\n)*the last words");
#if defined(__x86_64__)
  EXPECT_EXIT(crash(CrashWithoutAStack), ::testing::KilledBySignal(SIGSEGV),
              "fatal signal SEGV at:\n(.|\n)*"
              "fatal signal SEGV; the last lines of the log:\n(.|\n)*the last words")
      << "to follow its stack is a crash, too";
#endif
}

// There the handler needs a stack of its own. The frames shown are the innermost ones.
TEST_F(Log, AStackThatOverflowsIsPrinted) {
  const auto overflow = [](bool on_another_thread) {
    // The main thread's may grow without bound.
    rlimit limit = {};
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, rlim_t{8} << 20);
    setrlimit(RLIMIT_STACK, &limit);
    InitLogging({.role = "psserver 1"}).IgnoreError();
    SetLogSeverity(LogSeverity::OFF);
    LogLine(LogSeverity::INFO, __FILE__, __LINE__, "the last words");
    if (!on_another_thread) std::exit(Overflow(0));
    std::thread([] {
      const SignalStack stack;
      std::exit(Overflow(0));
    }).join();
  };
  for (const bool on_another_thread : {false, true}) {
    EXPECT_EXIT(
        overflow(on_another_thread), ::testing::KilledBySignal(SIGSEGV),
        "fatal signal SEGV at:\n(.|\n)*  @ program[+]0x[0-9a-f]+  mu::Overflow\\(\\)\n(.|\n)*"
        "fatal signal SEGV; the last lines of the log:\n(.|\n)*the last words")
        << on_another_thread;
  }
}

TEST_F(Log, CrashPrintsTheLastLines) {
  EXPECT_EXIT(
      {
        InitLogging({.role = "psserver 1"}).IgnoreError();
        SetLogSeverity(LogSeverity::OFF);
        LogLine(LogSeverity::INFO, __FILE__, __LINE__, "the last words");
        raise(SIGSEGV);
      },
      ::testing::KilledBySignal(SIGSEGV),
      "fatal signal SEGV; the last lines of the log:\n(.|\n)*  .* I the last words");
}

TEST(LogSeverityTest, Names) {
  EXPECT_EQ(ParseLogSeverity("warn").value(), LogSeverity::WARN);
  EXPECT_EQ(ParseLogSeverity("off").value(), LogSeverity::OFF);
  EXPECT_THAT(ParseLogSeverity("loud"),
              testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use debug, info")));
}

}  // namespace
}  // namespace mu
