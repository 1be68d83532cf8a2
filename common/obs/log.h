// The log of a process: lines to stderr and, if asked, to a file; the last lines are kept in memory
// so that a message about a failure can carry them. Thread safe. Usable before InitLogging (then:
// stderr, from INFO on).
//
//   MU_LOG(INFO, "worker {} registered from {}", id, address);      // fmt style
//
// Severities: DEBUG, INFO, WARN, ERROR.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/status_text.h"

namespace mu {

enum class LogSeverity { DEBUG = 0, INFO = 1, WARN = 2, ERROR = 3, OFF = 4 };

// kJson: one object a line with "time" (RFC 3339, UTC), "level", "role", "message", from WARN on
// "source" (file:line), and, once they are known, "index", "job" and "epoch".
enum class LogFormat { kText, kJson };

struct LogOptions {
  std::string role;  // stands in every line: "coordinator", "worker 3"
  std::string file;  // appended to; empty: none
  LogSeverity level = LogSeverity::INFO;
  bool to_stderr = true;
  LogFormat format = LogFormat::kText;
  // On a fatal signal print its name, the stack (stack_trace.h) and the last lines to stderr.
  bool crash_handler = true;
};

// Sets up the process's log; a later call replaces the earlier set-up. PERMISSION_DENIED, NOT_FOUND
// or so if the file cannot be opened; the log then still goes to stderr.
absl::Status InitLogging(const LogOptions& options);

// What a daemon knows when it has registered; for lines of JSON.
struct LogIdentity {
  int64_t index = -1;  // -1: not known
  std::string job;
  uint64_t epoch = 0;  // 0: not known
};
void SetLogIdentity(LogIdentity identity);

// "text", "json".
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text);

// "debug", "info", "warn", "error", "off".
absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view text);

void SetLogSeverity(LogSeverity level);
bool LogEnabled(LogSeverity severity);

// Writes one line. Use MU_LOG.
void LogLine(LogSeverity severity, const char* file, int line, const std::string& message);

// The newest lines of this process, oldest first, at most `count` and at most kLogRingLines.
inline constexpr int kLogRingLines = 64;
std::vector<std::string> LastLogLines(int count = kLogRingLines);

// Writes out what may be buffered. Every line from INFO on is written at once anyway.
void FlushLog();

}  // namespace mu

#define MU_LOG(severity, ...)                                                                     \
  do {                                                                                            \
    if (::mu::LogEnabled(::mu::LogSeverity::severity)) {                                          \
      ::mu::LogLine(::mu::LogSeverity::severity, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                             \
  } while (false)

// What our code logs most often. (Debian's absl::string_view is not std's.)
template <>
struct fmt::formatter<absl::string_view> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(absl::string_view text, Context& context) const {
    return fmt::formatter<fmt::string_view>::format({text.data(), text.size()}, context);
  }
};
template <>
struct fmt::formatter<absl::Status> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(const absl::Status& status, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(mu::StatusText(status), context);
  }
};
template <>
struct fmt::formatter<absl::Duration> : fmt::formatter<fmt::string_view> {
  template <typename Context>
  auto format(absl::Duration duration, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(absl::FormatDuration(duration), context);
  }
};
template <typename Tag, typename Rep>
struct fmt::formatter<mu::StrongId<Tag, Rep>> : fmt::formatter<Rep> {
  template <typename Context>
  auto format(mu::StrongId<Tag, Rep> id, Context& context) const {
    return fmt::formatter<Rep>::format(id.value(), context);
  }
};
