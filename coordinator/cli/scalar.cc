#include "coordinator/cli/scalar.h"

#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mu {
namespace {

absl::Status Bad(absl::string_view expected, absl::string_view text, absl::string_view hint = "") {
  const absl::string_view shown = text.substr(0, 60);
  return absl::InvalidArgumentError(
      absl::StrCat("must be ", expected, ", not `", shown, "`", hint));
}

size_t DigitsAt(absl::string_view text, size_t from) {
  size_t end = from;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  return end - from;
}

bool LooksLikeReal(absl::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const size_t whole = DigitsAt(text, at);
  at += whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = DigitsAt(text, at + 1);
    at += 1 + fraction;
  }
  if (whole + fraction == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const size_t exponent = DigitsAt(text, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == text.size();
}

// A sign and decimal digits without a leading zero.
absl::Status CheckDigits(absl::string_view text) {
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const absl::string_view digits = text.substr(sign);
  if (digits.empty() || DigitsAt(digits, 0) != digits.size()) {
    const bool real = LooksLikeReal(text);
    return Bad("a whole number", text, real ? " (write it out in digits)" : "");
  }
  if (digits.size() > 1 && digits[0] == '0') {
    return Bad("a whole number", text, " (YAML reads a leading zero as octal: write it without)");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<bool> ParseBool(absl::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return Bad("true or false", text);
}

absl::StatusOr<int64_t> ParseInt(absl::string_view text) {
  if (absl::Status status = CheckDigits(text); !status.ok()) return status;
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value)) return Bad("within 64 bits", text);
  return value;
}

absl::StatusOr<uint64_t> ParseUint(absl::string_view text) {
  if (absl::Status status = CheckDigits(text); !status.ok()) return status;
  uint64_t value = 0;
  if (text[0] == '-') return Bad("a whole number that is not negative", text);
  if (!absl::SimpleAtoi(text, &value)) return Bad("within 64 bits", text);
  return value;
}

absl::StatusOr<double> ParseDouble(absl::string_view text) {
  if (!LooksLikeReal(text)) {
    absl::string_view name = text;
    if (!name.empty() && (name[0] == '-' || name[0] == '+')) name.remove_prefix(1);
    if (!name.empty() && name[0] == '.') name.remove_prefix(1);
    const std::string lower = absl::AsciiStrToLower(name);
    const bool special = lower == "inf" || lower == "nan" || lower == "infinity";
    return Bad(special ? "a finite number" : "a number", text);
  }
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) return Bad("a finite number", text);
  return value;
}

absl::StatusOr<float> ParseFloat(absl::string_view text) {
  const absl::StatusOr<double> value = ParseDouble(text);
  if (!value.ok()) return value.status();
  if (std::abs(*value) > std::numeric_limits<float>::max()) {
    return Bad("within a float's range (up to 3.4e38)", text);
  }
  const float result = static_cast<float>(*value);
  const bool written_zero = text.substr(0, text.find_first_of("eE")).find_first_of("123456789") ==
                            absl::string_view::npos;
  if (result == 0 && !written_zero) return Bad("within a float's range (from 1e-45)", text);
  return result;
}

}  // namespace mu
