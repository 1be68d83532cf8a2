// Who asks one end of a stream for its next message, and when: one thread at a time, when the
// message before has left. Thread safe.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/buffer.h"

namespace mu {

class WritePump {
 public:
  using Source = std::function<bool(Buffer*)>;

  WritePump() = default;
  explicit WritePump(Source next) {
    if (next != nullptr) Start(std::move(next));
  }

  // Nothing is asked before.
  void Start(Source next) {
    auto shared = std::make_shared<Source>(std::move(next));
    MutexLock lock(&mutex_);
    next_ = std::move(shared);
  }
  // The source is let go of as soon as nobody asks it.
  void Stop() {
    std::shared_ptr<Source> last;  // destroyed without the lock
    MutexLock lock(&mutex_);
    last.swap(next_);
  }
  // True: the caller is the one who has to call Next. False: another one does, or nobody need.
  bool Poke() {
    MutexLock lock(&mutex_);
    poked_ = true;
    if (busy_ || next_ == nullptr) return false;
    return busy_ = true;
  }
  // For whom Poke has told so, and, after a message, when that has left: the next message. False:
  // there is none, and its turn is over.
  bool Next(Buffer* message) {
    while (true) {
      std::shared_ptr<Source> next;
      {
        MutexLock lock(&mutex_);
        poked_ = false;
        next = next_;
      }
      if (next != nullptr && (*next)(message)) return true;
      next = nullptr;
      MutexLock lock(&mutex_);
      if (poked_ && next_ != nullptr) continue;
      busy_ = false;
      return false;
    }
  }

 private:
  Mutex mutex_;
  std::shared_ptr<Source> next_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;   // asking, or a message is on its way
  bool poked_ ABSL_GUARDED_BY(mutex_) = false;  // since the source was asked
};

}  // namespace mu
