#include "common/base/hash.h"

#include <cstring>

namespace mu {

uint64_t HashBytes(const void* data, size_t size, uint64_t seed) {
  const char* bytes = static_cast<const char*>(data);
  uint64_t h = Mix64(seed + kGolden) ^ (size * 0xFF51AFD7ED558CCDull);
  while (size >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    h = (h ^ Mix64(word + kGolden)) * 0x9FB21C651E98DF25ull;
    h ^= h >> 32;
    bytes += 8;
    size -= 8;
  }
  if (size > 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, size);
    h = (h ^ Mix64(word + kGolden)) * 0x9FB21C651E98DF25ull;
    h ^= h >> 32;
  }
  return Mix64(h);
}

}  // namespace mu
