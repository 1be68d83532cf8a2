#include "common/base/crc32c.h"

#include <nmmintrin.h>

#include <cstring>

namespace mu {

uint32_t ExtendCrc32c(uint32_t crc, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  uint64_t state = ~crc;
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = _mm_crc32_u64(state, word);
  }
  for (; size > 0; ++bytes, --size) {
    state = _mm_crc32_u8(static_cast<uint32_t>(state), static_cast<uint8_t>(*bytes));
  }
  return ~static_cast<uint32_t>(state);
}

}  // namespace mu
