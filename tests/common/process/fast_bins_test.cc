#include "common/process/fast_bins.h"

#include <gtest/gtest.h>

#include "tests/common/process/fast_bins.h"

namespace mu {
namespace {

TEST(FastBinsTest, AreNotUsedOnceTheyAreDisabled) {
  testing::EnableFastBins();
  if (testing::FastBinBytesAfterManyFrees() == 0)
    GTEST_SKIP() << "this build's allocator has no fast bins";
  DisableFastBins();
  EXPECT_EQ(testing::FastBinBytesAfterManyFrees(), 0u);
  testing::EnableFastBins();
}

}  // namespace
}  // namespace mu
