#include "common/exec/gemm.h"

#include <algorithm>

#include "common/exec/aligned_buffer.h"
#include "common/exec/gemm_kernels.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

void ApplyEpilogue(int64_t m, int64_t n, float* out, const Epilogue& epilogue) {
  for (int64_t row = 0; row < m; ++row) {
    float* const x = out + row * n;
    if (epilogue.bias != nullptr && epilogue.relu) {
      const float* const bias = epilogue.bias;
      MU_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) {
        const float sum = x[i] + bias[i];
        x[i] = sum < 0 ? 0.0f : sum;
      }
    } else if (epilogue.bias != nullptr) {
      AddTo(x, epilogue.bias, n);
    } else if (epilogue.relu) {
      MU_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) x[i] = x[i] < 0 ? 0.0f : x[i];
    }
    if (epilogue.positive != nullptr) {
      const float* const y = epilogue.positive + row * n;
      MU_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) x[i] = y[i] > 0 ? x[i] : 0.0f;
    }
  }
}

// One column: b is a vector of k.
void TimesVector(bool transpose_a, int64_t m, int64_t k, const float* a, const float* b,
                 float* out) {
  if (!transpose_a) {
    for (int64_t row = 0; row < m; ++row) out[row] = Dot(a + row * k, b, k);
    return;
  }
  std::fill(out, out + m, 0.0f);
  for (int64_t row = 0; row < k; ++row) AddScaled(out, b[row], a + row * m, m);
}

// k is 1: each row of the result is b scaled.
void Outer(int64_t m, int64_t n, const float* a, const float* b, float* out) {
  for (int64_t row = 0; row < m; ++row) {
    const float factor = a[row];
    float* const to = out + row * n;
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) to[i] = factor * b[i];
  }
}

void GeneralProduct(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k,
                    const float* a, const float* b, float* out) {
  static Product* const product = ProcessorHasAvx512() ? ProductAvx512 : ProductAvx2;
  thread_local AlignedBuffer scratch;
  product(m, n, k, transpose_a ? Operand{a, 1, m} : Operand{a, k, 1},
          transpose_b ? Operand{b, 1, k} : Operand{b, n, 1}, out,
          static_cast<float*>(scratch.Reserve(kProductScratch * sizeof(float))));
}

}  // namespace

void Gemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
          const float* b, float* out, const Epilogue& epilogue) {
  if (m == 0 || n == 0) return;
  if (k == 0) {
    std::fill(out, out + m * n, 0.0f);
  } else if (n == 1) {
    TimesVector(transpose_a, m, k, a, b, out);
  } else if (k == 1) {
    Outer(m, n, a, b, out);
  } else if (m == 1) {
    // A row times b is b transposed times a column.
    TimesVector(!transpose_b, n, k, b, a, out);
  } else {
    GeneralProduct(transpose_a, transpose_b, m, n, k, a, b, out);
  }
  ApplyEpilogue(m, n, out, epilogue);
}

}  // namespace mu
