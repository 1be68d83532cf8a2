// How tests wait for what nothing announces: they look again and again, and not for ever. No other
// test code sleeps (tests/structure/structure_test.py).
#pragma once

#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/steady_now.h"

namespace mu::testing {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

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

// Returns when `condition` does not hold any more; fails the test after kPatience.
template <typename Condition>
void WaitWhile(const Condition& condition) {
  EXPECT_TRUE(Eventually([&] { return !condition(); })) << "waited in vain";
}

}  // namespace mu::testing
