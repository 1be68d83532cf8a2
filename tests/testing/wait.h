// How tests wait for what nothing announces: they look again and again, and not for ever. No other
// test code sleeps (tests/structure/structure_test.py).
#pragma once

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/steady_now.h"

namespace mu::testing {

inline constexpr absl::Duration kPatience = absl::Seconds(60);
// With a whole program, such as a training with restarts, on a machine that has other work.
inline constexpr absl::Duration kRunPatience = absl::Minutes(4);

// Whether the condition holds within `patience`. For what must not happen: EXPECT_FALSE, and a
// patience that gives it time to happen.
template <typename Condition>
[[nodiscard]] bool Eventually(const Condition& condition, absl::Duration patience = kPatience) {
  const absl::Time end = SteadyNow() + patience;
  while (!condition()) {
    if (SteadyNow() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

// Returns when `condition` does not hold any more; fails the test after kPatience, at the caller's
// line.
template <typename Condition>
void WaitWhile(const Condition& condition, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) {
  if (!Eventually([&] { return !condition(); })) ADD_FAILURE_AT(file, line) << "waited in vain";
}

}  // namespace mu::testing
