// Time as a dependency: code that waits or measures takes a Clock, so that tests decide what time
// it is.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace mu {

// Thread safe, as are all implementations.
class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since some fixed moment of the past; never goes back.
  virtual int64_t Now() const = 0;

  // CLOCK_MONOTONIC, which all processes of a machine share. Never deleted.
  static Clock* Real();
};

// Stands still until it is told otherwise.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t now = 0) : now_(now) {}
  int64_t Now() const override { return now_.load(std::memory_order_acquire); }
  void Advance(absl::Duration by) {
    now_.fetch_add(absl::ToInt64Nanoseconds(by), std::memory_order_acq_rel);
  }

 private:
  std::atomic<int64_t> now_;
};

}  // namespace mu
