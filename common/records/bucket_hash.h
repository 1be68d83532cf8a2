// Hashes to buckets: the numbers that stand for categorical values. They are part of a trained
// model (its table's rows are known by them), so they must never change.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/base/hash.h"

namespace mu {

// x % divisor for a divisor known beforehand, without a division. Exact.
class FastModulo {
 public:
  explicit FastModulo(uint64_t divisor) : divisor_(divisor), reciprocal_(~uint64_t{0} / divisor) {}
  uint64_t operator()(uint64_t x) const {
    // The estimate of the quotient is at most two too small (Barrett reduction).
    const uint64_t quotient =
        static_cast<uint64_t>((static_cast<unsigned __int128>(x) * reciprocal_) >> 64);
    uint64_t rest = x - quotient * divisor_;
    while (rest >= divisor_) rest -= divisor_;
    return rest;
  }

 private:
  uint64_t divisor_;
  uint64_t reciprocal_;
};

// Of one field: HashCombine(seed, value) % buckets. A value is a number below 2^32 (eight
// hexadecimal digits), the HashString of any other text, or kMissing.
class BucketHash {
 public:
  static constexpr uint64_t kMissing = uint64_t{1} << 32;

  BucketHash(uint64_t seed, uint64_t buckets)
      : mixed_seed_(Mix64(seed) + kGolden), modulo_(buckets) {}

  int64_t OfValue(uint64_t value) const {
    // HashCombine(seed, value) with what depends on the seed alone done before.
    const uint64_t hash = Mix64(mixed_seed_ ^ (value * 0xFF51AFD7ED558CCDull));
    return static_cast<int64_t>(modulo_(hash));
  }
  int64_t OfText(absl::string_view text) const {
    return OfValue(HashBytes(text.data(), text.size()));
  }
  int64_t OfMissing() const { return OfValue(kMissing); }

 private:
  uint64_t mixed_seed_;
  FastModulo modulo_;
};

}  // namespace mu
