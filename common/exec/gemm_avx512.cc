// The one file that is compiled for AVX-512 (common/exec/CMakeLists.txt).
#include <immintrin.h>

#include "common/exec/gemm_blocked.h"

namespace mu {
namespace {

// 12 rows of 2 vectors are 24 sums of the 32 registers.
struct Avx512 {
  using Type = __m512;
  static constexpr int64_t kWidth = 16;
  static constexpr int kRows = 12, kVectors = 2;
  static Type Zero() { return _mm512_setzero_ps(); }
  static Type Load(const float* x) { return _mm512_loadu_ps(x); }
  static void Store(float* x, Type v) { _mm512_storeu_ps(x, v); }
  static Type Broadcast(float x) { return _mm512_set1_ps(x); }
  static Type Add(Type x, Type y) { return _mm512_add_ps(x, y); }
  static Type MultiplyAdd(Type x, Type y, Type z) { return _mm512_fmadd_ps(x, y, z); }
};

}  // namespace

void ProductAvx512(int64_t m, int64_t n, int64_t k, Operand a, Operand b, float* out,
                   float* scratch) {
  BlockedProduct<Avx512>(m, n, k, a, b, out, scratch);
}

}  // namespace mu
