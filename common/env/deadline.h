// Moments that are some time away.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/time/time.h"
#include "common/env/clock.h"

namespace mu {

// `clock`'s time in nanoseconds after `wait`; an endless wait ends at the last moment there is.
inline int64_t DeadlineNs(const Clock& clock, absl::Duration wait) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const int64_t now = clock.Now(), ns = absl::ToInt64Nanoseconds(wait);
  return ns > kLast - now ? kLast : now + ns;
}

}  // namespace mu
