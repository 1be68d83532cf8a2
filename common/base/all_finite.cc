#include "common/base/all_finite.h"

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace mu {

bool AllFinite(const float* values, size_t n) {
  // NaN and infinity have all bits of the exponent set.
  constexpr uint32_t kExponent = 0x7F800000;
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(kExponent));
  __m256i bad = _mm256_setzero_si256();
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    bad = _mm256_or_si256(bad, _mm256_cmpeq_epi32(_mm256_and_si256(bits, mask), mask));
  }
  bool finite = _mm256_testz_si256(bad, bad) != 0;
  for (; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, values + i, sizeof(bits));
    finite &= (bits & kExponent) != kExponent;
  }
  return finite;
}

}  // namespace mu
