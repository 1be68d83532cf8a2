#include "common/records/parse_number.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "absl/strings/charconv.h"

namespace mu {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8};

// Few digits, no exponent: both parts are exact in a double and the quotient is rounded once
// (Clinger 1990), then to float. Rounding twice could differ from the nearest float only for more
// digits than are allowed here.
template <typename T>
bool ParseShort(absl::string_view text, T* value) {
  constexpr size_t kMaxShort = 8;
  if (text.empty() || text.size() > kMaxShort) return false;
  uint32_t mantissa = 0;
  size_t fraction = 0;
  bool point = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned digit = static_cast<unsigned char>(text[i]) - unsigned{'0'};
    if (digit <= 9) {
      mantissa = mantissa * 10 + digit;
      fraction += point;
    } else if (text[i] == '.' && !point) {
      point = true;
    } else {
      return false;
    }
  }
  if (point && text.size() == 1) return false;
  *value = static_cast<T>(mantissa / kPowersOfTen[fraction]);
  return true;
}

// Digits, a point, an exponent.
template <typename T>
bool ParseLong(absl::string_view text, T* value) {
  // from_chars would take a second sign and words.
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '.')) return false;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *value);
  if (result.ptr != end) return false;
  if (result.ec == std::errc()) return std::isfinite(*value);
  if (result.ec != std::errc::result_out_of_range) return false;
  // Abseil's says which: what is too small is 0 or nearly so.
  double wide = 0;
  absl::from_chars(text.data(), end, wide);
  if (wide >= 1) return false;
  *value = static_cast<T>(wide);
  return true;
}

template <typename T>
bool Parse(absl::string_view text, T* value) {
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (!ParseShort(text, value) && !ParseLong(text, value)) return false;
  if (negative) *value = -*value;
  return true;
}

}  // namespace

bool ParseNumber(absl::string_view text, float* value) { return Parse(text, value); }

bool ParseNumber(absl::string_view text, double* value) {
  // What rounds to no float is refused by whoever reads it as one, so also here. Half a float's
  // step above the largest float:
  constexpr double kTooLarge = 0x1.ffffffp127;
  return Parse(text, value) && std::abs(*value) < kTooLarge;
}

}  // namespace mu
