// Hashes are part of the formats (initial values, buckets, shuffles): their values must never
// change.
#include "common/base/hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/base/crc32c.h"

namespace mu {
namespace {

TEST(Hash, SplitMixMatchesItsReference) {
  // Vigna's splitmix64.c seeded with 1234567.
  SplitMix random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317ull);
  EXPECT_EQ(random.Next(), 3203168211198807973ull);
  EXPECT_EQ(random.Next(), 9817491932198370423ull);
  EXPECT_EQ(random.Next(), 4593380528125082431ull);
  EXPECT_EQ(random.Next(), 16408922859458223821ull);
}

TEST(Hash, GoldenValues) {
  EXPECT_EQ(Mix64(0), 0ull);
  EXPECT_EQ(Mix64(1), 0x5692161d100b05e5ull);
  EXPECT_EQ(HashCombine(1, 2), 0xf43d9b2d6f7131d9ull);
  EXPECT_EQ(HashString(""), 0x48218226ff3cd4bfull);
  EXPECT_EQ(HashString("a"), 0x37955965a4aa08a1ull);
  EXPECT_EQ(HashString("68fd1e64", 3), 0xde0985193988a3eeull);
  EXPECT_EQ(HashString("a text that is longer than two words of eight"), 0x1452228260595765ull);
}

TEST(Hash, LengthSeedAndOrderMatter) {
  std::set<uint64_t> seen;
  std::string zeros;
  for (int size = 0; size < 40; ++size, zeros += '\0')
    EXPECT_TRUE(seen.insert(HashString(zeros)).second) << size;
  EXPECT_NE(HashString("ab", 1), HashString("ab", 2));
  EXPECT_NE(HashString("abcdefgh12345678"), HashString("12345678abcdefgh"));
  EXPECT_NE(HashCombine(1, 2), HashCombine(2, 1));
}

TEST(Hash, BucketsAreEven) {
  std::vector<int> buckets(64);
  for (int i = 0; i < 64000; ++i) ++buckets[HashString(std::to_string(i)) % 64];
  for (const int count : buckets) {
    EXPECT_GT(count, 850);
    EXPECT_LT(count, 1150);
  }
}

TEST(Hash, BelowAndUnitStayInside) {
  SplitMix random(5);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    EXPECT_LT(random.Below(7), 7u);
    const double unit = random.Unit();
    EXPECT_GT(unit, 0);
    EXPECT_LT(unit, 1);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
  EXPECT_GT(UnitDouble(0), 0);
  EXPECT_LT(UnitDouble(~0ull), 1);
  EXPECT_EQ(random.Below(1), 0u);
}

TEST(Crc32c, KnownVectors) {
  // RFC 3720, B.4.
  char bytes[48];
  std::memset(bytes, 0, 32);
  EXPECT_EQ(Crc32c(bytes, 32), 0x8a9136aau);
  std::memset(bytes, 0xFF, 32);
  EXPECT_EQ(Crc32c(bytes, 32), 0x62a8ab43u);
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(bytes, 32), 0x46dd794eu);
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<char>(31 - i);
  EXPECT_EQ(Crc32c(bytes, 32), 0x113fdb5cu);
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c("", 0), 0u);
}

// Bit by bit, as the definition says.
uint32_t PlainCrc32c(const std::string& text) {
  uint32_t sum = ~0u;
  for (const char byte : text) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~sum;
}

// Lengths around what is summed in several lanes at once, from any place.
TEST(Crc32c, IsThatOfTheDefinitionAroundTheLanes) {
  SplitMix random(10);
  std::string text(10000, '\0');
  for (char& byte : text) byte = static_cast<char>(random.Next());
  for (const size_t size : {1, 7, 8, 9, 1023, 3071, 3072, 3073, 3080, 6143, 6144, 6151, 9999}) {
    EXPECT_EQ(Crc32c(text.data() + 10000 - size, size), PlainCrc32c(text.substr(10000 - size)))
        << size;
  }
}

TEST(Crc32c, ExtendsInAnyPieces) {
  std::string text(20000, '\0');
  SplitMix random(9);
  for (char& byte : text) byte = static_cast<char>(random.Next());
  const uint32_t whole = Crc32c(text.data(), text.size());
  for (int round = 0; round < 100; ++round) {
    const size_t cut = random.Below(text.size() + 1);
    EXPECT_EQ(ExtendCrc32c(Crc32c(text.data(), cut), text.data() + cut, text.size() - cut), whole)
        << cut;
  }
}

}  // namespace
}  // namespace mu
