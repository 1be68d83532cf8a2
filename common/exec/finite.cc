#include "common/exec/finite.h"

#include <immintrin.h>

#include <cmath>

namespace mu {

bool AllFinite(const float* x, int64_t n) {
  // x - x is 0 for a finite x and NaN otherwise; NaNs survive in the sums.
  __m256 sum[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256 a = _mm256_loadu_ps(x + i);
    const __m256 b = _mm256_loadu_ps(x + i + 8);
    sum[0] = _mm256_add_ps(sum[0], _mm256_sub_ps(a, a));
    sum[1] = _mm256_add_ps(sum[1], _mm256_sub_ps(b, b));
  }
  bool finite = true;
  for (; i < n; ++i) finite &= std::isfinite(x[i]);
  const __m256 all = _mm256_add_ps(sum[0], sum[1]);
  return finite && _mm256_movemask_ps(_mm256_cmp_ps(all, all, _CMP_UNORD_Q)) == 0;
}

bool AllFinite(const View& view) {
  return view.dtype != kFloat32 || AllFinite(view.as<float>(), view.elements());
}

const char* NameOfNonFinite(const View& view) {
  const int64_t n = view.elements();
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(view.as<float>()[i]))
      return std::isnan(view.as<float>()[i]) ? "NaN" : "infinity";
  }
  return "NaN";
}

}  // namespace mu
