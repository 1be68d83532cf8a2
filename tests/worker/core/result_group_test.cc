#include "worker/core/result_group.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

absl::Time At(double ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

TEST(ResultGroupTest, SlowStepsGoAtOnce) {
  ResultGroup group(absl::Milliseconds(2));
  EXPECT_TRUE(group.Add(At(10)));
  EXPECT_TRUE(group.Add(At(12)));
  EXPECT_FALSE(group.holds());
}

TEST(ResultGroupTest, QuickStepsAreGrouped) {
  ResultGroup group(absl::Milliseconds(2));
  int messages = 0;
  for (int i = 0; i < 100; ++i) messages += group.Add(At(1 + i * 0.1)) ? 1 : 0;
  EXPECT_EQ(messages, 5);
  EXPECT_TRUE(group.holds());
}

TEST(ResultGroupTest, TheFirstResultOfARunGoesAtOnce) {
  ResultGroup group(absl::Milliseconds(2));
  EXPECT_TRUE(group.Add(At(1)));
  EXPECT_FALSE(group.Add(At(2)));
  group.Clear();
  EXPECT_FALSE(group.holds());
  EXPECT_TRUE(group.Add(At(2.5)));
}

}  // namespace
}  // namespace mu
