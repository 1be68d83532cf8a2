#include "common/metrics/exact_sum.h"

#include <bit>
#include <cmath>

namespace mu {
namespace {

constexpr int kDigitBits = 32;
constexpr int64_t kDigitMask = (int64_t{1} << kDigitBits) - 1;
constexpr int kSmallestExponent = -1074;
// An addition moves a digit by less than 2^32, so so many cannot overflow 63 bits.
constexpr uint32_t kMostAdditions = uint32_t{1} << 30;

}  // namespace

void ExactSum::Add(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const int biased = static_cast<int>(bits >> 52) & 0x7ff;
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (biased > 0) mantissa |= uint64_t{1} << 52;
  // value = mantissa * 2^(position - 1074)
  const int position = biased > 0 ? biased - 1 : 0;
  const int digit = position / kDigitBits;
  const auto wide = static_cast<unsigned __int128>(mantissa) << (position % kDigitBits);
  const int64_t parts[] = {static_cast<int64_t>(wide) & kDigitMask,
                           static_cast<int64_t>(wide >> kDigitBits) & kDigitMask,
                           static_cast<int64_t>(wide >> (2 * kDigitBits))};
  const bool negative = (bits >> 63) != 0;
  for (int i = 0; i < 3; ++i) digits_[digit + i] += negative ? -parts[i] : parts[i];
  if (++additions_ >= kMostAdditions) Carry();
}

void ExactSum::Carry() {
  for (int i = 0; i + 1 < kDigits; ++i) {
    const int64_t carry = digits_[i] >> kDigitBits;  // rounds down, so the rest is not negative
    digits_[i] -= carry * (int64_t{1} << kDigitBits);
    digits_[i + 1] += carry;
  }
  additions_ = 0;
}

void ExactSum::Merge(const ExactSum& other) {
  ExactSum carried = other;
  carried.Carry();
  Carry();
  for (int i = 0; i < kDigits; ++i) digits_[i] += carried.digits_[i];
  additions_ = 1;
}

double ExactSum::Value() const {
  ExactSum carried = *this;
  carried.Carry();
  // The digits are those of one number now: below a negative uppermost one, take its complement.
  const bool negative = carried.digits_[kDigits - 1] < 0;
  if (negative) {
    for (int64_t& digit : carried.digits_) digit = -digit;
    carried.Carry();
  }
  int top = kDigits - 1;
  while (top > 0 && carried.digits_[top] == 0) --top;
  // Three digits hold at least 65 bits; what is below them cannot matter more than one bit.
  double sum = 0;
  for (int i = top; i >= 0 && i > top - 3; --i) {
    sum += std::ldexp(static_cast<double>(carried.digits_[i]), kDigitBits * i + kSmallestExponent);
  }
  return negative ? -sum : sum;
}

}  // namespace mu
