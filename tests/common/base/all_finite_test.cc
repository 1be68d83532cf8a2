#include "common/base/all_finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace mu {
namespace {

TEST(AllFiniteTest, FindsEachBadValueAtEachPlace) {
  for (size_t n = 1; n < 70; ++n) {
    std::vector<float> values(n, -3.4e38f);
    EXPECT_TRUE(AllFinite(values.data(), n));
    for (size_t i = 0; i < n; ++i) {
      for (float bad :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        values[i] = bad;
        EXPECT_FALSE(AllFinite(values.data(), n)) << n << " " << i;
      }
      values[i] = 1e-45f;
    }
  }
  EXPECT_TRUE(AllFinite(nullptr, 0));
}

}  // namespace
}  // namespace mu
