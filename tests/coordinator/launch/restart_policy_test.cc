#include "coordinator/launch/restart_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mu {
namespace {

TEST(RestartPolicy, TheFirstDeathIsForgivenThenTheDelayGrowsToItsBound) {
  RestartPolicy policy(7);
  EXPECT_EQ(policy.Ended(absl::Hours(1)), absl::ZeroDuration());
  absl::Duration longest = absl::Milliseconds(100);
  for (int death = 0; death < 20; ++death) {
    const absl::Duration delay = policy.Ended(absl::Milliseconds(5));
    EXPECT_GE(delay, longest / 2);
    EXPECT_LE(delay, longest);
    longest = std::min(absl::Seconds(10), longest * 2);
  }
}

TEST(RestartPolicy, OneThatRanWellBeginsAfresh) {
  RestartPolicy policy(7);
  for (int death = 0; death < 10; ++death) policy.Ended(absl::ZeroDuration());
  EXPECT_EQ(policy.Ended(absl::Seconds(2)), absl::ZeroDuration());
  EXPECT_LE(policy.Ended(absl::ZeroDuration()), absl::Milliseconds(100));
}

TEST(RestartPolicy, SeveralDoNotComeBackTogether) {
  RestartPolicy a(1), b(2);
  a.Ended(absl::ZeroDuration());
  b.Ended(absl::ZeroDuration());
  EXPECT_NE(a.Ended(absl::ZeroDuration()), b.Ended(absl::ZeroDuration()));
}

}  // namespace
}  // namespace mu
