// Lets a cut of a server's state happen between changes: any number of changes at once, or one cut.
// A cut that waits goes before changes that come later, so it waits only for those under way.
//
// Thread safe. Not recursive.
#pragma once

#include "common/base/mutex.h"

namespace mu {

class CutGate {
 public:
  // Held by whoever changes the state, for one change that belongs together and its record in the
  // ledger.
  class Change {
   public:
    explicit Change(CutGate* gate) : gate_(gate) { gate_->Enter(); }
    ~Change() { gate_->Leave(); }
    Change(const Change&) = delete;

   private:
    CutGate* const gate_;
  };
  // Held while a cut is taken: no Change is held by anybody.
  class Cut {
   public:
    explicit Cut(CutGate* gate) : gate_(gate) { gate_->Close(); }
    ~Cut() { gate_->Open(); }
    Cut(const Cut&) = delete;

   private:
    CutGate* const gate_;
  };

 private:
  void Enter() {
    MutexLock lock(&mutex_);
    while (closed_) moved_.Wait(&mutex_);
    ++changing_;
  }
  void Leave() {
    MutexLock lock(&mutex_);
    if (--changing_ == 0 && closed_) moved_.SignalAll();
  }
  void Close() {
    MutexLock lock(&mutex_);
    while (closed_) moved_.Wait(&mutex_);
    closed_ = true;
    while (changing_ > 0) moved_.Wait(&mutex_);
  }
  void Open() {
    MutexLock lock(&mutex_);
    closed_ = false;
    moved_.SignalAll();
  }

  Mutex mutex_;
  CondVar moved_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int changing_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace mu
