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

// docs/checkpoint_format.md, "From text to row": its pseudocode, written again from the page alone.
uint64_t PageMix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
uint64_t PageCombine(uint64_t a, uint64_t b) {
  return PageMix((PageMix(a) + 0x9E3779B97F4A7C15) ^ (b * 0xFF51AFD7ED558CCD));
}
uint64_t PageHash(const std::string& bytes) {
  uint64_t h = PageMix(0x9E3779B97F4A7C15) ^ (bytes.size() * 0xFF51AFD7ED558CCD);
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t w = 0;
    for (size_t k = 0; k < 8 && i + k < bytes.size(); ++k)
      w |= uint64_t{static_cast<uint8_t>(bytes[i + k])} << (8 * k);
    h = (h ^ PageMix(w + 0x9E3779B97F4A7C15)) * 0x9FB21C651E98DF25;
    h = h ^ (h >> 32);
  }
  return PageMix(h);
}

TEST(BucketHashTest, ThePageIsRight) {
  EXPECT_EQ(PageHash(""), 0x48218226ff3cd4bf);
  EXPECT_EQ(PageHash("muster"), 0xa9b2c29457e78d40);
  EXPECT_EQ(BucketHash(HashString("city"), 1000).OfText("rome"), 323);
  const std::string text = "a text of more than sixteen bytes \xFF";
  for (size_t size = 0; size <= text.size(); ++size)
    EXPECT_EQ(HashString(text.substr(0, size)), PageHash(text.substr(0, size)));
  EXPECT_EQ(HashCombine(3, 5), PageCombine(3, 5));
  EXPECT_EQ(static_cast<uint64_t>(BucketHash(7, 1000).OfText("x")),
            PageCombine(7, PageHash("x")) % 1000);
  EXPECT_EQ(static_cast<uint64_t>(BucketHash(7, 1000).OfMissing()),
            PageCombine(7, uint64_t{1} << 32) % 1000);
}

}  // namespace
}  // namespace mu
