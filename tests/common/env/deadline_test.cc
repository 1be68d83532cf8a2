#include "common/env/deadline.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(DeadlineNs, EndlessWaitsDoNotOverflow) {
  const ManualClock clock(1000);
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(DeadlineNs(clock, absl::Nanoseconds(7)), 1007);
  EXPECT_EQ(DeadlineNs(clock, -absl::Nanoseconds(7)), 993);
  EXPECT_EQ(DeadlineNs(clock, absl::Nanoseconds(kLast - 1000)), kLast);
  EXPECT_EQ(DeadlineNs(clock, absl::Nanoseconds(kLast - 999)), kLast);
  EXPECT_EQ(DeadlineNs(clock, absl::InfiniteDuration()), kLast);
}

}  // namespace
}  // namespace mu
