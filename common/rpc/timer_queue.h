// Calls functions at given times, on one thread of its own. Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace mu {

class TimerQueue {
 public:
  TimerQueue();
  ~TimerQueue();  // what is not due yet is not called; not from the queue's own thread

  // One for the whole process, never destroyed.
  static TimerQueue& Process();

  // `task` must not block. The id is for Cancel.
  uint64_t CallAt(absl::Time when, std::function<void()> task);
  uint64_t CallAfter(absl::Duration delay, std::function<void()> task);
  // True: it will not be called. False: it was called, or is being called now.
  bool Cancel(uint64_t id);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, absl::Time> times_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace mu
