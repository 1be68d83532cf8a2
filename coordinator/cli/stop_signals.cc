#include "coordinator/cli/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

// A handler has nothing but globals; only lock-free atomics are safe in it.
std::atomic<int> stop_count{0};
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void Say(const char* text, size_t size) {
  // A handler can do nothing about a message that does not get out.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, size);
}

void OnSignal(int signal) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal);
  if (stop_count.fetch_add(1) > 0) {
    static constexpr char kNow[] = "\nstopped at once; nothing more is saved\n";
    Say(kNow, sizeof(kNow) - 1);
    ::_exit(ExitCodeOfSignal(signal));
  }
  static constexpr char kClean[] =
      "\nstopping cleanly, what was trained is saved; again to stop at once\n";
  Say(kClean, sizeof(kClean) - 1);
}

struct sigaction old_int, old_term;

}  // namespace

StopSignals::StopSignals() {
  stop_count = 0;
  first_signal = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, &old_int);
  ::sigaction(SIGTERM, &action, &old_term);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &old_int, nullptr);
  ::sigaction(SIGTERM, &old_term, nullptr);
}

std::atomic<int>* StopSignals::count() { return &stop_count; }
int StopSignals::signal() const { return first_signal; }

}  // namespace mu
