// How many different values there are, in little memory.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace mu {

// Exact up to kExact values, then HyperLogLog (Flajolet, Fusy, Gandouet, Meunier, 2007) with 2^14
// registers: a standard error of 0.8%. Pure; not thread safe.
class DistinctCounter {
 public:
  static constexpr size_t kExact = 10'000;

  void Add(uint64_t hash);  // of the value, 64 good bits
  uint64_t Estimate() const;
  bool exact() const { return registers_.empty(); }

 private:
  static constexpr int kBits = 14;
  void AddToRegisters(uint64_t hash);

  absl::flat_hash_set<uint64_t> values_;  // while exact
  std::vector<uint8_t> registers_;
};

}  // namespace mu
