// Powers and the cosine from single IEEE operations: every machine computes the same bits, which
// libm does not promise. Accurate to about 1e-14; for numbers that a step needs once.
#pragma once

#include <cstdint>

namespace mu {

// base^exponent by repeated squaring.
inline double IntegerPower(double base, uint64_t exponent) {
  double power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) power *= base;
  }
  return power;
}

// base^exponent of a base in (0, 1] and an exponent from 0; 0 below the smallest number.
double RealPower(double base, double exponent);

// cos(pi * x) for x in [0, 1].
double CosineOfPi(double x);

}  // namespace mu
