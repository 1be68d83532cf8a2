#include "common/records/distinct_counter.h"

#include <algorithm>
#include <cmath>

#include "common/base/hash.h"

namespace mu {

void DistinctCounter::AddToRegisters(uint64_t hash) {
  const uint64_t mixed = Mix64(hash);
  const uint64_t rest = mixed << kBits | uint64_t{1} << (kBits - 1);  // never 0
  uint8_t& rank = registers_[mixed >> (64 - kBits)];
  rank = std::max<uint8_t>(rank, static_cast<uint8_t>(__builtin_clzll(rest) + 1));
}

void DistinctCounter::Add(uint64_t hash) {
  if (!registers_.empty()) return AddToRegisters(hash);
  values_.insert(hash);
  if (values_.size() <= kExact) return;
  registers_.resize(size_t{1} << kBits);
  for (const uint64_t value : values_) AddToRegisters(value);
  values_.clear();
}

uint64_t DistinctCounter::Estimate() const {
  if (registers_.empty()) return values_.size();
  const auto m = static_cast<double>(registers_.size());
  double sum = 0;
  size_t zeros = 0;
  for (const uint8_t rank : registers_) {
    sum += std::ldexp(1.0, -rank);
    zeros += rank == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  // Where many registers are empty their number tells more (section 4 of the paper).
  const bool small = raw <= 2.5 * m && zeros > 0;
  return static_cast<uint64_t>(
      std::llround(small ? m * std::log(m / static_cast<double>(zeros)) : raw));
}

}  // namespace mu
