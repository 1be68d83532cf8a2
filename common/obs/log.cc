#include "common/obs/log.h"

#include <fcntl.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/mutex.h"
#include "common/base/printable.h"
#include "common/base/signal_stack.h"
#include "common/obs/stack_trace.h"

namespace mu {
namespace {

constexpr size_t kLineBytes = 512;
// A process whose memory is in disorder is to end, even if its stack cannot be written.
constexpr unsigned kMostSecondsInHandler = 10;

// The last lines, in static memory so that a signal handler can print them whatever state the heap
// is in.
struct Ring {
  Mutex mutex;
  uint64_t written = 0;  // guarded by mutex, except in the signal handler
  char lines[kLogRingLines][kLineBytes] = {};
};

Ring& GetRing() {
  static Ring* ring = new Ring;
  return *ring;
}
Ring* const g_ring = &GetRing();

std::atomic<int> g_level{static_cast<int>(LogSeverity::INFO)};

struct Sinks {
  Mutex mutex;
  std::shared_ptr<spdlog::logger> logger ABSL_GUARDED_BY(mutex);
  LogFormat format ABSL_GUARDED_BY(mutex) = LogFormat::kText;
  std::string role ABSL_GUARDED_BY(mutex);  // without an index
  LogIdentity identity ABSL_GUARDED_BY(mutex);
};
Sinks& GetSinks() {
  static Sinks* sinks = new Sinks;  // never destroyed: threads may log while the process exits
  return *sinks;
}

spdlog::level::level_enum ToSpdlog(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::DEBUG:
      return spdlog::level::debug;
    case LogSeverity::INFO:
      return spdlog::level::info;
    case LogSeverity::WARN:
      return spdlog::level::warn;
    case LogSeverity::ERROR:
      return spdlog::level::err;
    case LogSeverity::OFF:
      break;
  }
  return spdlog::level::off;
}

std::shared_ptr<spdlog::logger> MakeLogger(const std::string& role, LogFormat format,
                                           std::vector<spdlog::sink_ptr> sinks) {
  auto logger = std::make_shared<spdlog::logger>(role, sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::trace);  // the level is ours
  logger->set_pattern(format == LogFormat::kJson ? "%v"
                      : role.empty()             ? "%Y-%m-%d %H:%M:%S.%e %^%L%$ %v"
                                                 : "%Y-%m-%d %H:%M:%S.%e %^%L%$ " + role + ": %v");
  logger->flush_on(spdlog::level::info);
  return logger;
}

std::shared_ptr<spdlog::logger> GetLogger() {
  Sinks& sinks = GetSinks();
  MutexLock lock(&sinks.mutex);
  if (sinks.logger == nullptr) {
    sinks.logger =
        MakeLogger("", LogFormat::kText, {std::make_shared<spdlog::sinks::stderr_color_sink_mt>()});
  }
  return sinks.logger;
}

// None if the log is text.
std::optional<std::string> JsonLine(LogSeverity severity, absl::Time now,
                                    const std::string& message, const std::string& source) {
  {
    Sinks& sinks = GetSinks();
    MutexLock lock(&sinks.mutex);
    if (sinks.format != LogFormat::kJson) return std::nullopt;
  }
  nlohmann::ordered_json object;
  object["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone());
  constexpr const char* kNames[] = {"debug", "info", "warn", "error", "off"};
  object["level"] = kNames[static_cast<int>(severity)];
  {
    Sinks& sinks = GetSinks();
    MutexLock lock(&sinks.mutex);
    object["role"] = sinks.role;
    if (sinks.identity.index >= 0) object["index"] = sinks.identity.index;
    if (!sinks.identity.job.empty()) object["job"] = sinks.identity.job;
    if (sinks.identity.epoch > 0) object["epoch"] = sinks.identity.epoch;
  }
  object["message"] = message;
  if (!source.empty()) object["source"] = source;
  // Bytes that are no UTF-8 (a path, say) are replaced.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Remember(absl::string_view line) {
  Ring& ring = GetRing();
  MutexLock lock(&ring.mutex);
  char* slot = ring.lines[ring.written % kLogRingLines];
  const size_t size = std::min(line.size(), kLineBytes - 1);
  std::memcpy(slot, line.data(), size);
  slot[size] = '\0';
  ++ring.written;
}

// Only async-signal-safe calls.
void WriteText(const char* text) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
}

// Where the program was when the signal came.
const void* PlaceOf(const void* context) {
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#endif
}

void OnFatalSignal(int signal, siginfo_t*, void* context) {
  static std::atomic<pid_t> crashed{0};  // the first thread that did
  pid_t first = 0;
  const bool again = !crashed.compare_exchange_strong(first, gettid());
  // What the first one writes is to be complete; then it ends the process.
  while (again && first != gettid()) pause();
  const char* const known = sigabbrev_np(signal);
  const char* const name = known != nullptr ? known : "?";
  if (!again) {
    alarm(kMostSecondsInHandler);
    WriteText("\nfatal signal ");
    WriteText(name);
    WriteText(" at:\n");
    WriteStackTrace(STDERR_FILENO, PlaceOf(context));
  }
  // From here on no signal comes back here: the stack may be what is in disorder.
  std::signal(signal, SIG_DFL);
  // Last, since whoever looks for a reason looks at the last lines.
  WriteText("\nfatal signal ");
  WriteText(name);
  WriteText("; the last lines of the log:\n");
  const uint64_t end = g_ring->written;
  for (uint64_t i = end > kLogRingLines ? end - kLogRingLines : 0; i < end; ++i) {
    WriteText("  ");
    WriteText(g_ring->lines[i % kLogRingLines]);
    WriteText("\n");
  }
  raise(signal);
}

void InstallCrashHandler() {
  PrepareStackTraces();
  // This thread's; others make their own.
  [[maybe_unused]] static thread_local const SignalStack stack;
  struct sigaction action = {};
  action.sa_sigaction = OnFatalSignal;
  action.sa_flags = SA_NODEFER | SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL})
    sigaction(signal, &action, nullptr);
}

}  // namespace

absl::Status InitLogging(const LogOptions& options) {
  std::vector<spdlog::sink_ptr> outputs;
  absl::Status result;
  if (!options.file.empty()) {
    // Tried first by hand: spdlog throws, and its text lacks what to do.
    const int fd = open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
      result = absl::ErrnoToStatus(
          errno, absl::StrCat("cannot write the log file ", options.file,
                              "; name one in a folder that exists and can be written"));
    } else {
      close(fd);
      try {
        outputs.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file));
      } catch (const spdlog::spdlog_ex& error) {
        result = absl::UnavailableError(
            absl::StrCat("cannot write the log file ", options.file, ": ", error.what()));
      }
    }
  }
  if (options.to_stderr || !result.ok()) {
    outputs.push_back(std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  }
  SetLogSeverity(options.level);
  if (options.crash_handler) InstallCrashHandler();
  Sinks& sinks = GetSinks();
  MutexLock lock(&sinks.mutex);
  sinks.logger = MakeLogger(options.role, options.format, std::move(outputs));
  sinks.format = options.format;
  sinks.role = options.role.substr(0, options.role.find(' '));
  return result;
}

void SetLogIdentity(LogIdentity identity) {
  Sinks& sinks = GetSinks();
  MutexLock lock(&sinks.mutex);
  sinks.identity = std::move(identity);
}

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(
      absl::StrCat("log format '", text, "' is unknown; use text or json"));
}

absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view text) {
  if (text == "debug") return LogSeverity::DEBUG;
  if (text == "info") return LogSeverity::INFO;
  if (text == "warn") return LogSeverity::WARN;
  if (text == "error") return LogSeverity::ERROR;
  if (text == "off") return LogSeverity::OFF;
  return absl::InvalidArgumentError(
      absl::StrCat("log level '", text, "' is unknown; use debug, info, warn, error or off"));
}

void SetLogSeverity(LogSeverity level) {
  g_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

bool LogEnabled(LogSeverity severity) {
  return static_cast<int>(severity) >= g_level.load(std::memory_order_relaxed);
}

void LogLine(LogSeverity severity, const char* file, int line, const std::string& message) {
  const char* slash = std::strrchr(file, '/');
  const std::string source = severity >= LogSeverity::WARN
                                 ? absl::StrCat(slash == nullptr ? file : slash + 1, ":", line)
                                 : "";
  const std::string shown = PrintableLines(message);  // a terminal or a person reads it
  const std::string text = source.empty() ? shown : absl::StrCat(shown, " [", source, "]");
  const absl::Time now = absl::Now();
  // Loaded once, by whoever logs first.
  static const absl::TimeZone zone = absl::LocalTimeZone();
  Remember(absl::StrCat(absl::FormatTime("%H:%M:%E3S ", now, zone),
                        std::string(1, "DIWE-"[static_cast<int>(severity)]), " ", text));
  const std::optional<std::string> json = JsonLine(severity, now, message, source);
  const std::string& written = json.has_value() ? *json : text;
  GetLogger()->log(ToSpdlog(severity), spdlog::string_view_t(written.data(), written.size()));
}

std::vector<std::string> LastLogLines(int count) {
  Ring& ring = GetRing();
  MutexLock lock(&ring.mutex);
  const uint64_t wanted = static_cast<uint64_t>(std::max(0, std::min(count, kLogRingLines)));
  const uint64_t begin = ring.written > wanted ? ring.written - wanted : 0;
  std::vector<std::string> lines;
  for (uint64_t i = begin; i < ring.written; ++i) lines.emplace_back(ring.lines[i % kLogRingLines]);
  return lines;
}

void FlushLog() { GetLogger()->flush(); }

}  // namespace mu
