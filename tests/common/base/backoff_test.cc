#include "common/base/backoff.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mu {
namespace {

TEST(Backoff, DoublesWithJitterUpToTheLongest) {
  Backoff backoff(absl::Milliseconds(10), absl::Milliseconds(80), 5);
  double upper_ms = 10;
  for (int i = 0; i < 20; ++i) {
    const double ms = absl::ToDoubleMilliseconds(backoff.Next());
    EXPECT_GE(ms, upper_ms / 2 - 1e-6);
    EXPECT_LE(ms, upper_ms + 1e-6);
    upper_ms = std::min(80.0, upper_ms * 2);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(10));
  // The same seed gives the same delays, another seed others.
  Backoff a(absl::Milliseconds(10), absl::Seconds(1), 1),
      b(absl::Milliseconds(10), absl::Seconds(1), 1),
      c(absl::Milliseconds(10), absl::Seconds(1), 2);
  const absl::Duration first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
}

}  // namespace
}  // namespace mu
