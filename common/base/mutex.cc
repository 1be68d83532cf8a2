#include "common/base/mutex.h"

#include <algorithm>
#include <chrono>

#include "common/base/steady_now.h"

#if defined(__SANITIZE_THREAD__)
#define MU_TSAN 1
#else
#define MU_TSAN 0
#endif

#if MU_TSAN
// Debian's Abseil counts the references of a Status where TSan does not see it: the thread that
// deletes it seems to race with those that let it go before.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:absl::debian3::Status::Unref\n"
         "race:absl::debian3::status_internal::Payload\n"  // the same, where Unref is inlined
         "race:absl::debian3::time_internal\n";            // the cache of time zones
}
#endif

namespace mu {

void CondVar::Wait(Mutex* mutex) {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  cv_.wait(lock);
  lock.release();
}

bool CondVar::WaitFor(Mutex* mutex, absl::Duration timeout) {
#if MU_TSAN
  using Clock = std::chrono::system_clock;  // of whose waits TSan of GCC 12 knows
#else
  using Clock = std::chrono::steady_clock;
#endif
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  const absl::Duration most = std::min(timeout, absl::Hours(1));  // the sum must not overflow
  const bool expired = cv_.wait_until(lock, Clock::now() + absl::ToChronoMicroseconds(most)) ==
                       std::cv_status::timeout;
  lock.release();
  return expired && most == timeout;
}

void Notification::Notify() {
  MutexLock lock(&mutex_);
  notified_ = true;
  changed_.SignalAll();
}

bool Notification::HasBeenNotified() const {
  MutexLock lock(&mutex_);
  return notified_;
}

void Notification::Wait() const {
  MutexLock lock(&mutex_);
  while (!notified_) changed_.Wait(&mutex_);
}

bool Notification::WaitFor(absl::Duration timeout) const {
  const absl::Time until = SteadyNow() + timeout;
  MutexLock lock(&mutex_);
  while (!notified_) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

}  // namespace mu
