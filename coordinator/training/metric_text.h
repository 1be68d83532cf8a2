// How losses and metrics are written for people.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_format.h"

namespace mu {

// Four digits behind the point. Of a number below 0.1 four that are not the leading zeros: two
// values that differ by half a percent have different texts. Of one that is too large or too small
// for that, four digits in all.
inline std::string MetricText(double value) {
  constexpr double kLarge = 1e6, kSmall = 0.1, kSmallest = 1e-9;
  const double size = std::abs(value);
  if (size == 0 || (size >= kSmall && size < kLarge)) return absl::StrFormat("%.4f", value);
  if (!(size >= kSmallest && size < kLarge)) return absl::StrFormat("%.4g", value);
  const int digits = 3 - static_cast<int>(std::floor(std::log10(size)));
  std::string text = absl::StrFormat("%.*f", digits, value);
  // 0.052300 says no more than 0.0523 does.
  text.resize(std::max(text.find_last_not_of('0') + 1, text.find('.') + 5));
  return text;
}

}  // namespace mu
