// Looks at the job's directory for coordinators of newer epochs, on a thread of its own: the
// directory may not answer for as long as it likes. Thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace mu {

class EpochWatcher {
 public:
  ~EpochWatcher() { Stop(); }
  // Calls seen(newest()) every so often. `newest` may outlive this object, in a look that hangs.
  void Start(std::function<uint64_t()> newest, absl::Duration every,
             std::function<void(uint64_t)> seen) {
    state_ = std::make_shared<State>();
    {
      MutexLock lock(&state_->mutex);
      state_->seen = std::move(seen);
    }
    std::thread([state = state_, newest = std::move(newest), every] {
      do {
        const uint64_t epoch = newest();
        MutexLock lock(&state->mutex);
        if (state->seen != nullptr) state->seen(epoch);
      } while (!state->stop.WaitFor(every));
    }).detach();
  }
  // When it returns, `seen` is not called any more. Does not wait for a look that hangs.
  void Stop() {
    if (state_ == nullptr) return;
    state_->stop.Notify();
    MutexLock lock(&state_->mutex);
    state_->seen = nullptr;
  }

 private:
  struct State {
    Notification stop;
    Mutex mutex;
    std::function<void(uint64_t)> seen ABSL_GUARDED_BY(mutex);  // null: nobody wants to know
  };
  std::shared_ptr<State> state_;
};

}  // namespace mu
