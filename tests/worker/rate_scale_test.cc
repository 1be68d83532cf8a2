#include "worker/rate_scale.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(RateScaleTest, GrowsLinearlyToOneAndStays) {
  EXPECT_EQ(RateScale(0, 4), 0.25f);
  EXPECT_EQ(RateScale(1, 4), 0.5f);
  EXPECT_EQ(RateScale(3, 4), 1.0f);
  EXPECT_EQ(RateScale(1'000'000'000'000, 4), 1.0f);
}

TEST(RateScaleTest, WithoutWarmupItIsOneFromTheFirstStep) {
  EXPECT_EQ(RateScale(0, 0), 1.0f);
  EXPECT_EQ(RateScale(0, 1), 1.0f);
}

}  // namespace
}  // namespace mu
