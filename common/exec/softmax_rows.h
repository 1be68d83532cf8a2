// What softmax and its relatives do with one row of numbers. Only for the .cc files of kernels.
#pragma once

#include <cmath>

#include "common/exec/packet_math.h"
#include "common/exec/rows.h"

namespace mu {

// The largest element; -infinity of none. NaNs may be passed over: what is computed with them is
// NaN anyway.
inline float RowMax(const float* x, int64_t n) {
  Packet max = Constant(-INFINITY);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) max = _mm256_max_ps(_mm256_loadu_ps(x + i), max);
  float largest = -INFINITY;
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, max);
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

// Sum of exp(x - shift).
inline float SumExp(const float* x, int64_t n, float shift) {
  return SumOf(n, [x, shift](int64_t i, __m256i mask) {
    const Packet e = ExpOf(_mm256_sub_ps(_mm256_maskload_ps(x + i, mask), Constant(shift)));
    return _mm256_and_ps(e, _mm256_castsi256_ps(mask));
  });
}

// What may be subtracted from a row's elements: their largest, or 0 if that is infinite.
inline float ShiftOf(float max) { return std::isinf(max) ? 0.0f : max; }

// log(sum(exp(x))): -infinity of no elements.
inline float LogSumExp(const float* x, int64_t n) {
  const float shift = ShiftOf(RowMax(x, n));
  return shift + LogOf(SumExp(x, n, shift));
}

// out = scale * exp(x - shift), for x and out that are one array or do not overlap.
inline void ScaledExp(const float* x, int64_t n, float shift, float scale, float* out) {
  for (int64_t i = 0; i < n; i += 8) {
    const Packet e = ExpOf(_mm256_sub_ps(Load(x, i, n), Constant(shift)));
    Store(out, i, n, _mm256_mul_ps(e, Constant(scale)));
  }
}

// out = scale * softmax(x)
inline void ScaledSoftmax(const float* x, int64_t n, float scale, float* out) {
  const float max = RowMax(x, n);
  ScaledExp(x, n, max, scale / SumExp(x, n, max), out);
}

}  // namespace mu
