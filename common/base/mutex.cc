#include "common/base/mutex.h"

#include <algorithm>
#include <chrono>

#include "absl/time/clock.h"

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

#if MU_TSAN
void CondVar::Wait(Mutex* mutex) {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  cv_.wait(lock);
  lock.release();
}
bool CondVar::WaitFor(Mutex* mutex, absl::Duration timeout) {
  std::unique_lock<std::mutex> lock(mutex->mutex_, std::adopt_lock);
  // A wait until a time of the system clock is the one that TSan of GCC 12 intercepts.
  const absl::Duration most = std::min(timeout, absl::Hours(1));  // the sum must not overflow
  const auto until =
      std::chrono::system_clock::now() + std::chrono::microseconds(absl::ToInt64Microseconds(most));
  const bool expired = cv_.wait_until(lock, until) == std::cv_status::timeout;
  lock.release();
  return expired && most == timeout;
}
void CondVar::Signal() { cv_.notify_one(); }
void CondVar::SignalAll() { cv_.notify_all(); }
#else
void CondVar::Wait(Mutex* mutex) { cv_.Wait(&mutex->mutex_); }
bool CondVar::WaitFor(Mutex* mutex, absl::Duration timeout) {
  return cv_.WaitWithTimeout(&mutex->mutex_, timeout);
}
void CondVar::Signal() { cv_.Signal(); }
void CondVar::SignalAll() { cv_.SignalAll(); }
#endif

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
  const absl::Time until = absl::Now() + timeout;
  MutexLock lock(&mutex_);
  while (!notified_) {
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) return false;
    changed_.WaitFor(&mutex_, left);
  }
  return true;
}

}  // namespace mu
