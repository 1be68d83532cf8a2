// Loops over floats, eight at a time, whose results do not depend on the alignment of their
// operands.
//
// Only for the .cc files of kernels. AVX2 and FMA are there: the build is for x86-64-v3.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "common/exec/loops.h"

namespace mu {

inline float SumLanes(__m256 v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The first n < 8 lanes are set.
inline __m256i LaneMask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// Sums term(load) over eight lanes in four accumulators, then lane by lane: always the same order
// for one n. `load(i, mask)` gives elements i..i+7, zeros where the mask (if any) is unset.
template <typename Load>
float SumOf(int64_t n, Load&& load) {
  __m256 sum[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps()};
  const __m256i all = _mm256_set1_epi32(-1);
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    MU_UNROLL
    for (int k = 0; k < 4; ++k) sum[k] = _mm256_add_ps(sum[k], load(i + 8 * k, all));
  }
  for (; i + 8 <= n; i += 8) sum[0] = _mm256_add_ps(sum[0], load(i, all));
  if (i < n) sum[1] = _mm256_add_ps(sum[1], load(i, LaneMask(n - i)));
  return SumLanes(_mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
}

inline float Sum(const float* x, int64_t n) {
  return SumOf(n, [x](int64_t i, __m256i mask) { return _mm256_maskload_ps(x + i, mask); });
}

inline float Dot(const float* x, const float* y, int64_t n) {
  return SumOf(n, [x, y](int64_t i, __m256i mask) {
    return _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), _mm256_maskload_ps(y + i, mask));
  });
}

// y += x
inline void AddTo(float* y, const float* x, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
  }
  for (; i < n; ++i) y[i] += x[i];
}

// y += a * x, the product rounded before it is added
inline void AddScaled(float* y, float a, const float* x, int64_t n) {
  const __m256 factor = _mm256_set1_ps(a);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 product = _mm256_mul_ps(factor, _mm256_loadu_ps(x + i));
    _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), product));
  }
  for (; i < n; ++i) {
    const float product = a * x[i];
    y[i] += product;
  }
}

// Copies rows of a fixed small size without a call.
inline void CopyFloats(float* to, const float* from, int64_t n) {
  if (n == 16) {
    _mm256_storeu_ps(to, _mm256_loadu_ps(from));
    _mm256_storeu_ps(to + 8, _mm256_loadu_ps(from + 8));
    return;
  }
  std::memcpy(to, from, n * sizeof(float));
}

}  // namespace mu
