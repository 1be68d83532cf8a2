// How losses and metrics are written for people.
#pragma once

#include <cmath>
#include <string>

#include "absl/strings/str_format.h"

namespace mu {

// Four digits behind the point; of a number that is too large for that, four digits in all.
inline std::string MetricText(double value) {
  constexpr double kLarge = 1e6;
  return std::abs(value) < kLarge ? absl::StrFormat("%.4f", value) : absl::StrFormat("%.4g", value);
}

}  // namespace mu
