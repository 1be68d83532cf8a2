#include "common/optimizer/staleness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace mu {
namespace {

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(DiscountOf, NoneIsOne) {
  for (const uint64_t late : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, kMost})
    EXPECT_EQ(DiscountOf(muster::STALENESS_DISCOUNT_NONE, late), 1.0f);
}

TEST(DiscountOf, InverseDividesByTheLateness) {
  const auto inverse = [](uint64_t late) {
    return DiscountOf(muster::STALENESS_DISCOUNT_INVERSE, late);
  };
  EXPECT_EQ(inverse(0), 1.0f);
  EXPECT_EQ(inverse(1), 1.0f);
  EXPECT_EQ(inverse(2), 0.5f);
  EXPECT_EQ(inverse(16), 0.0625f);
  EXPECT_GT(inverse(kMost), 0.0f);
}

TEST(DiscountOf, ExponentialShrinksByTheSameFactorEachTime) {
  const auto exponential = [](uint64_t late) {
    return DiscountOf(muster::STALENESS_DISCOUNT_EXPONENTIAL, late);
  };
  EXPECT_EQ(exponential(0), 1.0f);
  EXPECT_NEAR(exponential(7), 0.5, 0.005);
  EXPECT_NEAR(exponential(20), std::exp(-2.0), 1e-6);
  EXPECT_GT(exponential(kMost), 0.0f);
  EXPECT_LT(exponential(kMost), 1e-29f);
}

}  // namespace
}  // namespace mu
