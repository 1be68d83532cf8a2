// Matrix products of floats on one thread.
#pragma once

#include <cstdint>

namespace mu {

// What is done to a product before it is stored; matmul fused with its neighbours.
struct Epilogue {
  const float* bias = nullptr;  // [n], added to each row
  bool relu = false;            // then max(x, 0), NaN staying NaN
  // [m, n], then x where this is > 0, else 0: the gradient of relu.
  const float* positive = nullptr;
};

// out[m, n] = a[m, k] * b[k, n], all row major and dense; with transpose_a `a` is stored as [k, m],
// with transpose_b `b` as [n, k]. `out` overlaps nothing. The order of
// additions depends on the sizes only, so results are the same bits on every machine with the same
// build, whether it has AVX-512 or not.
void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
          const float* b, float* out, const Epilogue& epilogue);

}  // namespace mu
