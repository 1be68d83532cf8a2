// Threads for tasks that may block: as many as are needed at once, up to a limit. Thread safe.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"

namespace mu {

class ThreadPool {
 public:
  // A thread that has had nothing to do for `idle` ends.
  explicit ThreadPool(int max_threads, absl::Duration idle = absl::Seconds(5));
  // Runs what is queued and waits for all threads (for all others, if called from one of them).
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void Post(std::function<void()> task);

 private:
  struct Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace mu
