#include "common/base/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/numbers.h"
#include "common/base/hash.h"

namespace mu {
namespace {

TEST(NumberTextTest, HasTheDigitsThatAreNeeded) {
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(NumberText(1700000049.5), "1700000049.5");
  EXPECT_EQ(NumberText(1700000049.5, 0.5), "1700000050");
  EXPECT_EQ(NumberText(28.866070047722118, 28.866e-6), "28.86607");
  EXPECT_EQ(NumberText(2.0 / 3, 0.5), "0.666667");
  EXPECT_EQ(NumberText(1e-9), "1e-09");
}

TEST(NumberTextTest, WholeNumbersAreWrittenInFull) {
  EXPECT_EQ(NumberText(0), "0");
  EXPECT_EQ(NumberText(-3), "-3");
  EXPECT_EQ(NumberText(1700000000, 1e9), "1700000000");
  EXPECT_EQ(NumberText(9007199254740991), "9007199254740991");
  EXPECT_EQ(NumberText(1e300), "1e+300");
}

TEST(NumberTextTest, OfNoNumbers) {
  EXPECT_EQ(NumberText(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN(), 1), "nan");
}

TEST(NumberTextTest, IsExactUnlessAnErrorIsAllowed) {
  SplitMix random(7);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::ldexp(random.Unit() - 0.5, static_cast<int>(random.Below(200)) - 100);
    double said = 0;
    ASSERT_TRUE(absl::SimpleAtod(NumberText(value), &said));
    ASSERT_EQ(said, value);
    const double error = std::abs(value) * 1e-8;
    ASSERT_TRUE(absl::SimpleAtod(NumberText(value, error), &said));
    ASSERT_NEAR(said, value, error);
  }
}

}  // namespace
}  // namespace mu
