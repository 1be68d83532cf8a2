#include "common/metrics/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "common/base/hash.h"

namespace mu {
namespace {

double SumOf(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.Add(value);
  return sum.Value();
}

TEST(ExactSum, LosesNothing) {
  EXPECT_EQ(SumOf({}), 0);
  EXPECT_EQ(SumOf({1e300, 1, -1e300}), 1);
  EXPECT_EQ(SumOf({0.1, 0.2, -0.3}), 0x1p-55);  // 0.1 + 0.2 - 0.3 in doubles is twice that
  EXPECT_EQ(SumOf({5e-324, 5e-324}), 1e-323);
  EXPECT_EQ(SumOf({-1.5, 0.25}), -1.25);
  EXPECT_EQ(SumOf({-0.0, 0.0}), 0);
  EXPECT_EQ(SumOf({std::numeric_limits<double>::max(), -1}), std::numeric_limits<double>::max());
  EXPECT_TRUE(std::isinf(SumOf(std::vector<double>(4, std::numeric_limits<double>::max()))));
}

// Against long double, whose 64 bits hold sums of numbers of this range exactly.
TEST(ExactSum, AgreesWithALongerSum) {
  SplitMix random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> values;
    long double expected = 0;
    for (int i = 0; i < 1000; ++i) {
      values.push_back(std::round((random.Unit() - 0.5) * 1e9) / 1024);
      expected += values.back();
    }
    EXPECT_EQ(SumOf(values), static_cast<double>(expected));
  }
}

TEST(ExactSum, DoesNotDependOnOrderOrCuts) {
  SplitMix random(1);
  std::vector<double> values;
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::ldexp(random.Unit() - 0.5, static_cast<int>(random.Next() % 600) - 300));
  const double whole = SumOf(values);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.Next() % i]);
    ExactSum parts[3];
    for (const double value : values) parts[random.Next() % 3].Add(value);
    parts[2].Merge(parts[0]);
    parts[1].Merge(parts[2]);
    EXPECT_EQ(parts[1].Value(), whole);
  }
}

}  // namespace
}  // namespace mu
