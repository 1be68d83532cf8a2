#include "common/base/number_text.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace mu {
namespace {

constexpr double kWhole = 0x1p53;  // below it a double tells whole numbers apart

std::string WholeText(double value) { return absl::StrFormat("%.0f", value); }

bool IsWhole(double value) { return std::abs(value) < kWhole && std::trunc(value) == value; }

}  // namespace

std::string NumberText(double value, double error) {
  constexpr int kFewest = 6, kMost = 17;  // so many say every double
  if (IsWhole(value)) return WholeText(value);
  if (!std::isfinite(value)) return absl::StrFormat("%g", value);
  std::string text;
  double said = 0;
  for (int digits = kFewest; digits <= kMost; ++digits) {
    text = absl::StrFormat("%.*g", digits, value);
    if (absl::SimpleAtod(text, &said) && std::abs(said - value) <= error) break;
  }
  return IsWhole(said) ? WholeText(said) : text;
}

}  // namespace mu
