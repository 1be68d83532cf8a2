#include "common/base/shared_mutex.h"

#include "common/base/check.h"

namespace mu {

SharedMutex::SharedMutex() {
  pthread_rwlockattr_t attributes;
  MU_CHECK(::pthread_rwlockattr_init(&attributes) == 0);
  MU_CHECK(::pthread_rwlockattr_setkind_np(&attributes,
                                           PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP) == 0);
  MU_CHECK(::pthread_rwlock_init(&lock_, &attributes) == 0);
  ::pthread_rwlockattr_destroy(&attributes);
}

SharedMutex::~SharedMutex() { ::pthread_rwlock_destroy(&lock_); }

// An error: the lock is this thread's already.
void SharedMutex::Lock() { MU_CHECK(::pthread_rwlock_wrlock(&lock_) == 0); }

void SharedMutex::Unlock() { ::pthread_rwlock_unlock(&lock_); }

void SharedMutex::ReaderLock() { MU_CHECK(::pthread_rwlock_rdlock(&lock_) == 0); }

void SharedMutex::ReaderUnlock() { ::pthread_rwlock_unlock(&lock_); }

}  // namespace mu
