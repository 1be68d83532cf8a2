// A lock with thread-safety annotations that many readers or one writer hold, for what is read for
// long. Where the lock is held for moments, Mutex (mutex.h) is cheaper.
//
// A writer that waits goes before readers that come after it, so readers that overlap without end
// do not keep it waiting. Therefore a thread that reads must not lock the same mutex again, nor
// wait for one that reads.
#pragma once

#include <pthread.h>

#include "absl/base/thread_annotations.h"

namespace mu {

class ABSL_LOCKABLE SharedMutex {
 public:
  SharedMutex();
  ~SharedMutex();
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Unlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS;

 private:
  pthread_rwlock_t lock_;  // TSan intercepts it; std::shared_mutex lets writers wait for ever
};

class ABSL_SCOPED_LOCKABLE WriterMutexLock {
 public:
  explicit WriterMutexLock(SharedMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~WriterMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  WriterMutexLock(const WriterMutexLock&) = delete;
  WriterMutexLock& operator=(const WriterMutexLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(SharedMutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  SharedMutex* const mutex_;
};

}  // namespace mu
