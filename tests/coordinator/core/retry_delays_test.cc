#include "coordinator/core/retry_delays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace mu {
namespace {

TEST(RetryDelays, DoubleWithJitterUpToTheLongest) {
  RetryDelays delays(5);
  absl::Duration longest = RetryDelays::kFirst;
  for (int failures = 1; failures <= 40; ++failures) {
    const absl::Duration delay = delays.After(failures);
    EXPECT_GE(delay, longest / 2) << failures;
    EXPECT_LE(delay, longest) << failures;
    longest = std::min(2 * longest, RetryDelays::kLongest);
  }
  EXPECT_NE(delays.After(40), delays.After(40)) << "jitter";
  EXPECT_LE(delays.After(std::numeric_limits<int>::max()), RetryDelays::kLongest);
  for (const int failures : {1, 0, -1}) EXPECT_LE(delays.After(failures), RetryDelays::kFirst);
}

TEST(RetryDelays, AreTheSameForASeed) {
  RetryDelays a(1), b(1), c(2);
  const absl::Duration first = a.After(1);
  EXPECT_EQ(first, b.After(1));
  EXPECT_NE(first, c.After(1));
}

}  // namespace
}  // namespace mu
