#include <immintrin.h>

#include "common/exec/gemm_blocked.h"

namespace mu {
namespace {

// 4 rows of 3 vectors are 12 sums of the 16 registers.
struct Avx2 {
  using Type = __m256;
  static constexpr int64_t kWidth = 8;
  static constexpr int kRows = 4, kVectors = 3;
  static Type Zero() { return _mm256_setzero_ps(); }
  static Type Load(const float* x) { return _mm256_loadu_ps(x); }
  static void Store(float* x, Type v) { _mm256_storeu_ps(x, v); }
  static Type Broadcast(float x) { return _mm256_set1_ps(x); }
  static Type Add(Type x, Type y) { return _mm256_add_ps(x, y); }
  static Type MultiplyAdd(Type x, Type y, Type z) { return _mm256_fmadd_ps(x, y, z); }
};

}  // namespace

void ProductAvx2(int64_t m, int64_t n, int64_t k, Operand a, Operand b, float* out,
                 float* scratch) {
  BlockedProduct<Avx2>(m, n, k, a, b, out, scratch);
}

bool ProcessorHasAvx512() { return __builtin_cpu_supports("avx512f"); }

}  // namespace mu
