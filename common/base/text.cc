#include "common/base/text.h"

#include <cstddef>
#include <cstdint>

namespace mu {
namespace {

// Bytes of the character that begins at `text[i]`; 0 if there is none.
size_t CharacterAt(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return k < text.size() ? static_cast<uint8_t>(text[k]) : uint8_t{0};
  };
  const auto follows = [&](size_t k) { return (byte(k) & 0xC0) == 0x80; };
  const uint8_t first = byte(i), second = byte(i + 1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(i + 1) ? 2 : 0;
  if ((first & 0xF0) == 0xE0) {
    // Neither overlong nor a surrogate.
    const bool good = !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second >= 0xA0);
    return good && follows(i + 1) && follows(i + 2) ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const bool good = !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second >= 0x90);
    return good && follows(i + 1) && follows(i + 2) && follows(i + 3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string ValidUtf8(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t size = CharacterAt(text, i);
    if (size == 0) {
      result += '?';
      ++i;
    } else {
      result.append(text.data() + i, size);
      i += size;
    }
  }
  return result;
}

}  // namespace mu
