// The memory that copies take while a cut is being written: every row and variable that is changed
// before the writer came by is copied first. Counts the bytes, so that those who change may wait
// for the writer, and notes a failure to get memory, which ends the save.
//
// Thread safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/base/steady_now.h"

namespace mu {

class CutCopies {
 public:
  void set_limit(size_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  void Add(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Release(size_t bytes) {
    if (bytes == 0) return;
    MutexLock lock(&mutex_);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    released_.SignalAll();
  }
  bool HasRoom() const {
    return bytes_.load(std::memory_order_relaxed) <= limit_.load(std::memory_order_relaxed);
  }
  // False if there was no room all that time.
  bool WaitForRoom(absl::Duration timeout) {
    const absl::Time until = SteadyNow() + timeout;
    MutexLock lock(&mutex_);
    while (!HasRoom()) {
      const absl::Duration left = until - SteadyNow();
      if (left <= absl::ZeroDuration()) return false;
      released_.WaitFor(&mutex_, left);
    }
    return true;
  }
  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // A copy could not be made: the cut is lost.
  void Fail() { failed_.store(true); }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void ClearFailure() { failed_.store(false); }

 private:
  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> limit_{static_cast<size_t>(-1)};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  CondVar released_;
};

}  // namespace mu
