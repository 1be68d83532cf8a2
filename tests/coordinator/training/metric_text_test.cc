#include "coordinator/training/metric_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace mu {
namespace {

TEST(MetricText, HasFourDigitsBehindThePoint) {
  EXPECT_EQ(MetricText(0), "0.0000");
  EXPECT_EQ(MetricText(0.1), "0.1000");
  EXPECT_EQ(MetricText(0.79264), "0.7926");
  EXPECT_EQ(MetricText(-1.5), "-1.5000");
  EXPECT_EQ(MetricText(999999.5), "999999.5000");
}

TEST(MetricText, HasFourDigitsOfASmallNumber) {
  EXPECT_EQ(MetricText(0.0523), "0.0523");
  EXPECT_EQ(MetricText(0.05234), "0.05234");
  EXPECT_EQ(MetricText(0.05), "0.0500");
  EXPECT_EQ(MetricText(0.0999999), "0.1000");
  EXPECT_EQ(MetricText(0.00101), "0.00101");
  EXPECT_EQ(MetricText(0.00104), "0.00104");
  EXPECT_EQ(MetricText(0.0001), "0.0001");
  EXPECT_EQ(MetricText(-0.000012346), "-0.00001235");
  EXPECT_EQ(MetricText(0.000002), "0.000002");
  EXPECT_EQ(MetricText(2e-9), "0.000000002");
}

TEST(MetricText, HasAnExponentBeyondThat) {
  EXPECT_EQ(MetricText(2e-10), "2e-10");
  EXPECT_EQ(MetricText(2.5171e37), "2.517e+37");
  EXPECT_EQ(MetricText(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(MetricText(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(MetricText, HalfAPercentIsSeen) {
  for (double value = 1e-12; value < 1e9; value *= 1.37)
    EXPECT_NE(MetricText(value), MetricText(1.005 * value)) << value;
}

}  // namespace
}  // namespace mu
