#include "common/optimizer/exact_math.h"

#include <cmath>

namespace mu {
namespace {

constexpr double kLn2 = 0.693147180559945309417;
constexpr double kPi = 3.14159265358979323846;
constexpr double kSqrtHalf = 0.707106781186547524401;

// 2 atanh(t) with t = (m - 1) / (m + 1), m within [sqrt(1/2), sqrt(2)].
double NaturalLogarithm(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact, as ldexp and floor
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);
  double sum = 0;
  for (int n = 25; n >= 1; n -= 2) sum = sum * t * t + 1.0 / n;
  return 2 * t * sum + exponent * kLn2;
}

// Of y <= 0.
double Exponential(double y) {
  if (y < -744) return 0;
  const double k = std::floor(y / kLn2 + 0.5);
  const double rest = y - k * kLn2;
  double sum = 1;
  for (int n = 16; n >= 1; --n) sum = 1 + sum * rest / n;
  return std::ldexp(sum, static_cast<int>(k));
}

}  // namespace

double RealPower(double base, double exponent) {
  return Exponential(exponent * NaturalLogarithm(base));
}

double CosineOfPi(double x) {
  if (x > 0.5) return -CosineOfPi(1 - x);
  const double square = (kPi * x) * (kPi * x);
  double sum = 1;
  for (int n = 24; n >= 2; n -= 2) sum = 1 - sum * square / (n * (n - 1));
  return sum;
}

}  // namespace mu
