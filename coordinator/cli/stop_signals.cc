#include "coordinator/cli/stop_signals.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "absl/strings/ascii.h"
#include "coordinator/cli/notices.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

// A handler has nothing but globals; only lock-free atomics are safe in it.
std::atomic<int> stop_count{0};
std::atomic<int> first_signal{0};
std::atomic<bool> stop_saves{false};
std::atomic<bool> stop_in_json{false};
sem_t stop_came;  // with `stop_in_json`: wakes who writes the log
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

constexpr char kClean[] = "\nstopping cleanly; again to stop at once\n";
constexpr char kCleanAndSaved[] =
    "\nstopping cleanly, what was trained is saved; again to stop at once\n";
constexpr char kNow[] = "\nstopped at once\n";
constexpr char kNowUnsaved[] = "\nstopped at once; nothing more is saved\n";
// Without the time, which a handler cannot write so.
constexpr char kNowInJson[] = R"({"level":"warn","role":"coordinator","message":"stopped at once"})"
                              "\n";
constexpr char kNowUnsavedInJson[] =
    R"({"level":"warn","role":"coordinator","message":"stopped at once; nothing more is saved"})"
    "\n";

template <size_t kSize>
void Say(const char (&text)[kSize]) {
  // A handler can do nothing about a message that does not get out.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, kSize - 1);
}

void OnSignal(int signal) {
  // Of a terminal that is closed the shell tells as well as the kernel: that is no second thought.
  if (signal == SIGHUP && stop_count > 0) return;
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  const bool again = stop_count.fetch_add(1) > 0;
  if (!again && stop_in_json) {
    ::sem_post(&stop_came);
  } else if (!again) {
    stop_saves ? Say(kCleanAndSaved) : Say(kClean);
  } else if (stop_in_json) {
    stop_saves ? Say(kNowUnsavedInJson) : Say(kNowInJson);
  } else {
    stop_saves ? Say(kNowUnsaved) : Say(kNow);
  }
  if (again) ::_exit(ExitCodeOfSignal(signal));
}

void EndAtOnce(int signal) { ::_exit(ExitCodeOfSignal(signal)); }

void Install(void (*handler)(int), struct sigaction* old_int, struct sigaction* old_term,
             struct sigaction* old_hup) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, old_int);
  ::sigaction(SIGTERM, &action, old_term);
  ::sigaction(SIGHUP, nullptr, old_hup);
  if (old_hup->sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
}

struct sigaction old_int, old_term, old_hup;

}  // namespace

StopSignals::StopSignals(bool json) {
  stop_count = 0;
  first_signal = 0;
  stop_saves = false;
  stop_in_json = json;
  if (json) {
    ::sem_init(&stop_came, /*pshared=*/0, /*value=*/0);
    log_ = std::thread([this] { AnswerInLog(); });
  }
  Install(OnSignal, &old_int, &old_term, &old_hup);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &old_int, nullptr);
  ::sigaction(SIGTERM, &old_term, nullptr);
  ::sigaction(SIGHUP, &old_hup, nullptr);
  if (!log_.joinable()) return;
  ended_ = true;
  ::sem_post(&stop_came);
  log_.join();
}

void StopSignals::AnswerInLog() {
  while (stop_count == 0) {
    if (ended_) return;
    (void)::sem_wait(&stop_came);  // a handler that runs on this thread ends it, too
  }
  const std::string text = stop_saves ? kCleanAndSaved : kClean;
  Notices(/*json=*/true).Note(std::string(absl::StripAsciiWhitespace(text)));
}

void StopSignals::SetSaves() { stop_saves = true; }
std::atomic<int>* StopSignals::count() { return &stop_count; }
int StopSignals::signal() const { return first_signal; }

void EndOnSignalsAsFirstProcess() {
  if (::getpid() != 1) return;
  struct sigaction no_int, no_term, hup;
  Install(EndAtOnce, &no_int, &no_term, &hup);
}

}  // namespace mu
