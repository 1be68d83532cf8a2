// Whether the running step still moves: a read from a dead network disk may never come back, while
// heartbeats go on and nobody notices.
//
// The queue's thread says what it does; another one looks now and then. Looks are counted, not
// time: a process that was stopped for an hour has not been stuck. Calls to servers are left out,
// they have deadlines and are tried again.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "common/base/mutex.h"
#include "common/obs/telemetry.h"

namespace mu {

// Thread safe.
class StepWatch {
 public:
  struct Place {
    std::string doing;  // "step 7 of function 'train' is reading data"; empty: nothing that counts
    uint64_t moves = 0;
    uint64_t since_ns = 0;  // NowNs() of the last move
  };

  void Enter(const char* doing, const std::string& function, uint64_t step) {
    MutexLock lock(&mutex_);
    doing_ = doing;
    function_ = function;
    step_ = step;
    Move();
  }
  // Waits for servers, or for something to do.
  void Leave() {
    MutexLock lock(&mutex_);
    doing_ = nullptr;
    Move();
  }
  Place place() const;

  // Waits for servers as long as it lives.
  class Away {
   public:
    explicit Away(StepWatch* watch) : watch_(watch), doing_(watch->Suspend()) {}
    ~Away() { watch_->Resume(doing_); }
    Away(const Away&) = delete;
    Away& operator=(const Away&) = delete;

   private:
    StepWatch* const watch_;
    const char* const doing_;
  };

 private:
  void Move() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++moves_;
    since_ns_ = NowNs();
  }
  const char* Suspend() {
    MutexLock lock(&mutex_);
    Move();
    return std::exchange(doing_, nullptr);
  }
  void Resume(const char* doing) {
    MutexLock lock(&mutex_);
    Move();
    doing_ = doing;
  }

  mutable Mutex mutex_;
  const char* doing_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::string function_ ABSL_GUARDED_BY(mutex_);
  uint64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t moves_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t since_ns_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Of one thread.
class StuckDetector {
 public:
  // Stuck: at the same place in so many looks after the first.
  explicit StuckDetector(int64_t looks) : looks_(looks) {}

  bool Look(const StepWatch::Place& place) {
    same_ = place.moves == moves_ && !place.doing.empty() ? same_ + 1 : 0;
    moves_ = place.moves;
    return same_ >= looks_;
  }

 private:
  const int64_t looks_;
  int64_t same_ = 0;
  uint64_t moves_ = 0;
};

}  // namespace mu
