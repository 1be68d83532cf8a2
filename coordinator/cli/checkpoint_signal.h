// SIGUSR1: a checkpoint now, and training goes on. For users and schedulers that know of a
// preemption before it comes.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace mu {

// While it lives, SIGUSR1 is counted. At most one at a time.
class CheckpointSignal {
 public:
  CheckpointSignal();
  ~CheckpointSignal();
  CheckpointSignal(const CheckpointSignal&) = delete;

  const std::atomic<uint64_t>* count() const;

 private:
  struct sigaction old_;
};

}  // namespace mu
