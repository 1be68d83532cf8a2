// The matrix product behind Gemm, compiled once for each vector width that processors have.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mu {

// Element (i, j) is data[i * row_stride + j * column_stride]; one of the strides is 1.
struct Operand {
  const float* data;
  int64_t row_stride, column_stride;
};

// Floats of scratch that a product needs: packed blocks of b and a (gemm_blocked.h).
inline constexpr size_t kProductScratch = (384 + 16) * 256;

// out[m, n] = a[m, k] * b[k, n], k > 0, out dense and row major. All give the same bits.
using Product = void(int64_t m, int64_t n, int64_t k, Operand a, Operand b, float* out,
                     float* scratch);
Product ProductAvx2;
// Only where ProcessorHasAvx512().
Product ProductAvx512;

bool ProcessorHasAvx512();

}  // namespace mu
