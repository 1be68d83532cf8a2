// The time to wait and to measure by. The machine's clock is set now and then, by hours on a fresh
// virtual machine: whoever decided by it would find everybody silent, or wait for an hour.
#pragma once

#include <ctime>

#include "absl/time/time.h"

namespace mu {

// CLOCK_MONOTONIC as a Time: only differences mean something, it is no date. All processes of a
// machine share it.
inline absl::Time SteadyNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace mu
