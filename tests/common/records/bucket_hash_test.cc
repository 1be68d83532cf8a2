#include "common/records/bucket_hash.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(FastModuloTest, IsExact) {
  SplitMix random(1);
  for (uint64_t divisor : {1ull, 2ull, 3ull, 7ull, 100'000ull, (1ull << 32) - 1, 1ull << 32,
                           (1ull << 63) + 1, ~0ull}) {
    const FastModulo modulo(divisor);
    for (int i = 0; i < 1000; ++i) {
      const uint64_t x = random.Next() >> random.Below(64);
      ASSERT_EQ(modulo(x), x % divisor) << x << " % " << divisor;
    }
    for (uint64_t x : {uint64_t{0}, divisor - 1, divisor, divisor + 1, ~uint64_t{0}}) {
      ASSERT_EQ(modulo(x), x % divisor) << x << " % " << divisor;
    }
  }
}

TEST(BucketHashTest, IsWhatItsCommentSaysAndStays) {
  const BucketHash hash(5, 1000);
  EXPECT_EQ(hash.OfValue(77), static_cast<int64_t>(HashCombine(5, 77) % 1000));
  EXPECT_EQ(hash.OfText("ab"), hash.OfValue(HashString("ab")));
  // Saved models know their rows by these numbers.
  EXPECT_EQ(BucketHash(0, 1'000'000'007).OfValue(0x68fd1e64), 36227666);
  EXPECT_EQ(BucketHash(25, 1'000'000'007).OfMissing(), 10473173);
  EXPECT_EQ(BucketHash(HashString("x"), 1'000'000'007).OfText("Private"), 51634040);
}

}  // namespace
}  // namespace mu
