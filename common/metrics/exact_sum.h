// A sum of doubles that is exact until it is read, so that it does not depend on the order in which
// it was added up, nor on how parts of it were merged. Pure; not synchronised.
//
// A fixed-point number that covers all doubles, in digits of 32 bits that may carry late (the small
// superaccumulator of Neal, "Fast exact summation using small and large superaccumulators", 2015).
#pragma once

#include <array>
#include <cstdint>

namespace mu {

class ExactSum {
 public:
  // `value` must be finite.
  void Add(double value);
  void Merge(const ExactSum& other);
  // The sum, to the nearest double but for an error of one unit in the last place; infinite if it
  // is too large for one.
  double Value() const;

 private:
  // Digit i is worth 2^(32 i - 1074); the uppermost have room for carries.
  static constexpr int kDigits = 68;
  void Carry();

  std::array<int64_t, kDigits> digits_ = {};
  uint32_t additions_ = 0;  // since the last Carry
};

}  // namespace mu
