// The memory that copies take while a cut is being written: every row and variable that is changed
// before the writer came by is copied first. Counts the bytes, so that those who change may wait
// for the writer, and notes a failure to get memory, which ends the save.
//
// Thread safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>

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
    moved_at_ = SteadyNow();
    released_.SignalAll();
  }
  // The writer has written one more piece.
  void Wrote() {
    MutexLock lock(&mutex_);
    moved_at_ = SteadyNow();
  }
  bool HasRoom() const {
    return bytes_.load(std::memory_order_relaxed) <= limit_.load(std::memory_order_relaxed);
  }
  // However long that takes, as long as something is released or written. False: there was no room
  // and nothing was for `timeout`; or `abandoned`, which may be null and is asked again and again,
  // says that nobody waits any more.
  bool WaitForRoom(absl::Duration timeout, const std::function<bool()>& abandoned = nullptr) {
    const absl::Time begun = SteadyNow();
    MutexLock lock(&mutex_);
    while (!HasRoom()) {
      if (abandoned != nullptr && abandoned()) return false;
      absl::Duration left = std::max(begun, moved_at_) + timeout - SteadyNow();
      if (left <= absl::ZeroDuration()) return false;
      if (abandoned != nullptr) left = std::min(left, kAskAgain);
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
  static constexpr absl::Duration kAskAgain = absl::Seconds(1);

  std::atomic<size_t> bytes_{0};
  std::atomic<size_t> limit_{static_cast<size_t>(-1)};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  CondVar released_;
  absl::Time moved_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // by SteadyNow
};

}  // namespace mu
