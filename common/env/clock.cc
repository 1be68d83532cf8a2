#include "common/env/clock.h"

#include <time.h>

namespace mu {
namespace {

class RealClock final : public Clock {
 public:
  int64_t Now() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace

Clock* Clock::Real() {
  static RealClock* const clock = new RealClock;
  return clock;
}

}  // namespace mu
