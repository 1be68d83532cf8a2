// How long the core waits before it asks again for what has failed: longer with each failure in a
// row, with jitter, so that a server that is overloaded or away is not asked by all at once, ten
// times a second. Each thing that is asked for counts its own failures. Pure: the same seed gives
// the same delays.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/hash.h"

namespace mu {

class RetryDelays {
 public:
  static constexpr absl::Duration kFirst = absl::Milliseconds(100), kLongest = absl::Seconds(1);

  explicit RetryDelays(uint64_t seed) : random_(seed) {}

  // After so many failures in a row, at least 1; fewer count as 1. Uniform between a half of the
  // delay and all of it.
  absl::Duration After(int failures) {
    constexpr int kMostDoublings = 10;  // more would not be longer
    const int doublings = std::clamp(failures - 1, 0, kMostDoublings);
    return std::min(kFirst * (1 << doublings), kLongest) * (0.5 + 0.5 * random_.Unit());
  }

 private:
  SplitMix random_;
};

}  // namespace mu
