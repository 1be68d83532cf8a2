// Products of many small matrices, where a general GEMM would spend its time packing (the
// interaction of DLRM multiplies 27 x 16 matrices, one per record).
#pragma once

#include <cstdint>
#include <vector>

#include "common/exec/aligned_buffer.h"

namespace mu {

// Whether SmallGemm is the faster way for one product of these sizes.
inline bool IsSmallProduct(int64_t m, int64_t n, int64_t k) { return m * n * k <= 64 * 64 * 64; }

// For each of `count` products: out[m, n] = a[m, k] * b[k, n], dense and row major, with transposes
// as in Gemm. `scratch` is memory for one matrix. Every element is summed over k in order, with
// fused multiply-adds.
void SmallGemm(bool transpose_a, bool transpose_b, int64_t count, int64_t m, int64_t n, int64_t k,
               const float* a, const float* b, float* out, AlignedBuffer& scratch);

// For each of `count` matrices x[n, k] the products of its rows, each pair once: out[n (n - 1) / 2]
// is the part of x * x^T below the diagonal, row by row. The same bits as SmallGemm's.
void LowerTriangles(int64_t count, int64_t n, int64_t k, const float* x, float* out,
                    AlignedBuffer& scratch);

}  // namespace mu
