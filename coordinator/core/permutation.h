// A permutation of [0, n) that takes no memory: a Feistel network of four rounds over the next
// power of four, followed again and again while it leads beyond n (cycle walking: Black and Rogaway
// 2002, "Ciphers with arbitrary finite domains", section 3).
#pragma once

#include <cstdint>

#include "common/base/hash.h"

namespace mu {

class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed) : n_(n), seed_(seed) {
    while (half_bits_ < 32 && (uint64_t{1} << (2 * half_bits_)) < n) ++half_bits_;
  }
  // `i` < n. Fewer than four rounds of the network on average: its domain is below 4 n.
  uint64_t operator()(uint64_t i) const {
    do {
      i = Network(i);
    } while (i >= n_);
    return i;
  }

 private:
  uint64_t Network(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = i >> half_bits_, right = i & mask;
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t mixed = HashCombine(HashCombine(seed_, round), right) & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  const uint64_t n_;
  const uint64_t seed_;
  int half_bits_ = 1;
};

}  // namespace mu
