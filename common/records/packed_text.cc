#include "common/records/packed_text.h"

#include <algorithm>
#include <cstring>

namespace mu {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

void PackText(absl::string_view text, int column, ColumnSet* columns) {
  columns->Append(column, static_cast<int64_t>(text.size()));
  for (size_t at = 0; at < text.size(); at += sizeof(int64_t)) {
    int64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    columns->Append(column, word);
  }
}

std::string UnpackText(absl::Span<const int64_t> packed) {
  if (packed.empty()) return "";
  const absl::Span<const int64_t> words = packed.subspan(1);
  const size_t size = std::min(static_cast<size_t>(std::max<int64_t>(0, packed[0])),
                               words.size() * sizeof(int64_t));
  std::string text(size, '\0');
  if (size > 0) std::memcpy(&text[0], words.data(), size);
  return text;
}

}  // namespace mu
