#include "common/obs/clock_samples.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

constexpr uint64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond;

TEST(ClockSamples, TheirTimeWasReadHalfWay) {
  ClockSamples samples;
  samples.Add(100, 200, 1150);
  samples.Add(5000, 5000, 10);
  EXPECT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples.OffsetAt(1), 4990);
  ClockSamples ahead;
  ahead.Add(100, 200, 1150);
  EXPECT_EQ(ahead.OffsetAt(0), -1000);
}

TEST(ClockSamples, ASlowAnswerTakesTheWordOfAQuickOneNearby) {
  ClockSamples samples;
  // Their clock is 7 s ahead. The first answer was held up on its way back by 300 ms.
  samples.Add(0, 300 * kMillisecond, 7 * kSecond);
  samples.Add(kSecond, kSecond + 2, 8 * kSecond + 1);
  EXPECT_EQ(samples.OffsetAt(0), -static_cast<int64_t>(7 * kSecond));
  EXPECT_EQ(samples.OffsetAt(1), -static_cast<int64_t>(7 * kSecond));
}

TEST(ClockSamples, WhatIsFarAwayHasDrifted) {
  ClockSamples samples;
  samples.Add(0, 2, kSecond + 1);  // exact, an hour before
  // Their clock has gained 90 ms since; this answer tells it to within 20 ms.
  samples.Add(3600 * kSecond, 3600 * kSecond + 40 * kMillisecond,
              3601 * kSecond + 110 * kMillisecond);
  EXPECT_EQ(samples.OffsetAt(0), -static_cast<int64_t>(kSecond));
  EXPECT_EQ(samples.OffsetAt(1), -static_cast<int64_t>(kSecond + 90 * kMillisecond));
}

}  // namespace
}  // namespace mu
