// Eight floats at a time through Eigen's vectorised exp and log.
//
// Every element goes through the same eight-lane code, the last few of an array by way of a masked
// load; so a value does not depend on where in its tensor it stands, as it would with Eigen's array
// expressions, which finish with scalar calls. Only for the .cc files of kernels.
#pragma once

#include <Eigen/Core>

#include "common/exec/simd.h"

namespace mu {

using Packet = Eigen::internal::Packet8f;

inline Packet Constant(float x) { return _mm256_set1_ps(x); }
inline Packet Select(Packet mask, Packet yes, Packet no) { return _mm256_blendv_ps(no, yes, mask); }

// Eigen's exp saturates short of infinity and its min and max lose NaNs; both must be seen by the
// check of a step.
inline Packet ExpOf(Packet x) {
  const Packet inside = Eigen::internal::pexp(x);
  const Packet overflow = _mm256_cmp_ps(x, Constant(88.7228394f), _CMP_GT_OQ);
  const Packet underflow = _mm256_cmp_ps(x, Constant(-103.97f), _CMP_LT_OQ);
  const Packet bounded =
      Select(overflow, Constant(INFINITY), Select(underflow, Constant(0), inside));
  return Select(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), x, bounded);
}

inline Packet LogOf(Packet x) { return Eigen::internal::plog(x); }
inline float LogOf(float x) { return _mm256_cvtss_f32(LogOf(Constant(x))); }

// Elements i.. of an array of n, zeros past its end.
inline Packet Load(const float* x, int64_t i, int64_t n) {
  return i + 8 <= n ? _mm256_loadu_ps(x + i) : _mm256_maskload_ps(x + i, LaneMask(n - i));
}
inline void Store(float* x, int64_t i, int64_t n, Packet value) {
  if (i + 8 <= n) {
    _mm256_storeu_ps(x + i, value);
  } else {
    _mm256_maskstore_ps(x + i, LaneMask(n - i), value);
  }
}

}  // namespace mu
