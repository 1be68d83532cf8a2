// Locks with thread-safety annotations that ThreadSanitizer understands.
//
// Debian's Abseil is not instrumented, so under TSan these are std:: primitives (which are
// intercepted); otherwise absl's. Use these instead of either, with ABSL_GUARDED_BY on every
// guarded member.
#pragma once

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#if defined(__SANITIZE_THREAD__)
#define MU_TSAN 1
#else
#define MU_TSAN 0
#endif

namespace mu {

class ABSL_LOCKABLE Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
#if MU_TSAN
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
#else
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.Lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
#endif

 private:
  friend class CondVar;
#if MU_TSAN
  std::mutex mutex_;
#else
  absl::Mutex mutex_;
#endif
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

class CondVar {
 public:
  // Callers loop: while (!condition) cv.Wait(&mutex);
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // True if the timeout expired before a signal.
  bool WaitFor(Mutex* mutex, absl::Duration timeout)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Signal();
  void SignalAll();

 private:
#if MU_TSAN
  std::condition_variable cv_;
#else
  absl::CondVar cv_;
#endif
};

// Becomes true once.
class Notification {
 public:
  void Notify();
  bool HasBeenNotified() const;
  void Wait() const;
  // False if the timeout expired first.
  bool WaitFor(absl::Duration timeout) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool notified_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace mu
