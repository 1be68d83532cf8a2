#include "coordinator/cli/checkpoint_signal.h"

namespace mu {
namespace {

// A handler has nothing but globals; only lock-free atomics are safe in it.
std::atomic<uint64_t> requests{0};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace

CheckpointSignal::CheckpointSignal() {
  requests = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { requests.fetch_add(1); };
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, &old_);
}

CheckpointSignal::~CheckpointSignal() { ::sigaction(SIGUSR1, &old_, nullptr); }

const std::atomic<uint64_t>* CheckpointSignal::count() const { return &requests; }

}  // namespace mu
