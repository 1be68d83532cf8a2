// Integer hashing and random numbers that are the same on every machine and build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mu {

inline constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;

// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

constexpr uint64_t HashCombine(uint64_t a, uint64_t b) {
  return Mix64((Mix64(a) + kGolden) ^ (b * 0xFF51AFD7ED558CCDull));
}

// Uniform in (0, 1) from the top 53 bits.
constexpr double UnitDouble(uint64_t x) {
  const double unit = (static_cast<double>(x >> 11) + 0.5) / 9007199254740992.0;
  return unit < 1.0 ? unit : 1.0 - 1.0 / 9007199254740992.0;  // the largest would round to 1
}

// A 64-bit hash of bytes: stable over time, used for hashing text to buckets and for fingerprints.
// Not for security.
uint64_t HashBytes(const void* data, size_t size, uint64_t seed = 0);
inline uint64_t HashString(std::string_view text, uint64_t seed = 0) {
  return HashBytes(text.data(), text.size(), seed);
}

// A sequence of random numbers: SplitMix64.
class SplitMix {
 public:
  explicit constexpr SplitMix(uint64_t seed) : state_(seed) {}
  constexpr uint64_t Next() { return Mix64(state_ += kGolden); }
  // Uniform in [0, bound); bound > 0 and below 2^32 in practice, the bias is then below 2^-32.
  constexpr uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  constexpr double Unit() { return UnitDouble(Next()); }

 private:
  uint64_t state_;
};

}  // namespace mu
