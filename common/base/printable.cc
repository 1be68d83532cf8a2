#include "common/base/printable.h"

#include <cstddef>
#include <cstdint>

#include "common/base/text.h"

namespace mu {
namespace {

constexpr char kDigits[] = "0123456789abcdef";

void AppendEscape(char kind, uint8_t byte, std::string* result) {
  *result += '\\';
  *result += kind;
  if (kind == 'u') *result += "00";
  *result += kDigits[byte >> 4];
  *result += kDigits[byte & 15];
}

std::string Escaped(absl::string_view text, bool keep_lines) {
  const std::string valid = ValidUtf8(text);
  std::string result;
  result.reserve(valid.size());
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<uint8_t>(valid[i]);
    // U+0080 to U+009F are 0xC2 and themselves.
    const auto next = i + 1 < valid.size() ? static_cast<uint8_t>(valid[i + 1]) : uint8_t{0};
    if (byte == '\t' || (byte == '\n' && keep_lines)) {
      result += valid[i];
    } else if (byte == '\n') {
      result += "\\n";
    } else if (byte == '\r') {
      result += "\\r";
    } else if (byte < 0x20 || byte == 0x7F) {
      AppendEscape('x', byte, &result);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      AppendEscape('u', next, &result);
      ++i;
    } else {
      result += valid[i];
    }
  }
  return result;
}

}  // namespace

std::string Printable(absl::string_view text) { return Escaped(text, /*keep_lines=*/false); }

std::string PrintableLines(absl::string_view text) { return Escaped(text, /*keep_lines=*/true); }

}  // namespace mu
