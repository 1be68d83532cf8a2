// How long to wait before trying again: doubling, bounded, with jitter so that many callers do not
// come back at once. Not thread safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "common/base/hash.h"

namespace mu {

class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration longest, uint64_t seed)
      : first_(first), longest_(longest), next_(first), random_(seed) {}

  // Uniform between a half of the current delay and all of it.
  absl::Duration Next() {
    const absl::Duration delay = next_;
    next_ = std::min(longest_, next_ * 2);
    return delay * (0.5 + 0.5 * random_.Unit());
  }
  void Reset() { next_ = first_; }

 private:
  const absl::Duration first_;
  const absl::Duration longest_;
  absl::Duration next_;
  SplitMix random_;
};

}  // namespace mu
