#include "common/exec/small_gemm.h"

#include <cstring>

#include "common/exec/simd.h"

namespace mu {
namespace {

constexpr int kMaxRows = 6;  // 6 rows of two vectors are 12 accumulators of the 16 registers

// Computes `kRows` rows of `kVectors` * 8 columns. a(row, i) is a[row * row_stride + i * k_stride];
// b and out point at the first column; the last vector is stored under `mask`.
template <int kRows, int kVectors>
void Tile(int64_t k, const float* a, int64_t row_stride, int64_t k_stride, const float* b,
          int64_t b_stride, float* out, int64_t out_stride, __m256i mask, bool masked) {
  __m256 sum[kRows][kVectors];
  MU_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < k; ++i) {
    __m256 y[kVectors];
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) y[v] = _mm256_loadu_ps(b + i * b_stride + 8 * v);
    MU_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m256 x = _mm256_broadcast_ss(a + r * row_stride + i * k_stride);
      MU_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm256_fmadd_ps(x, y[v], sum[r][v]);
    }
  }
  MU_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* const to = out + r * out_stride;
    MU_UNROLL
    for (int v = 0; v + 1 < kVectors; ++v) _mm256_storeu_ps(to + 8 * v, sum[r][v]);
    float* const last = to + 8 * (kVectors - 1);
    if (masked) {
      _mm256_maskstore_ps(last, mask, sum[r][kVectors - 1]);
    } else {
      _mm256_storeu_ps(last, sum[r][kVectors - 1]);
    }
  }
}

using TileFunction = decltype(&Tile<1, 1>);
constexpr TileFunction kTiles[2][kMaxRows] = {
    {Tile<1, 1>, Tile<2, 1>, Tile<3, 1>, Tile<4, 1>, Tile<5, 1>, Tile<6, 1>},
    {Tile<1, 2>, Tile<2, 2>, Tile<3, 2>, Tile<4, 2>, Tile<5, 2>, Tile<6, 2>}};

void Transpose8x8(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_stride);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to + i * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to + (i + 4) * to_stride, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

// packed[k][stride] from b stored as [n, k] or [k, n].
void Pack(bool transpose, int64_t n, int64_t k, const float* b, float* packed, int64_t stride) {
  if (!transpose) {
    for (int64_t i = 0; i < k; ++i) std::memcpy(packed + i * stride, b + i * n, n * sizeof(float));
    return;
  }
  const int64_t whole_n = n & ~int64_t{7};
  const int64_t whole_k = k & ~int64_t{7};
  for (int64_t j = 0; j < whole_n; j += 8) {
    for (int64_t i = 0; i < whole_k; i += 8)
      Transpose8x8(b + j * k + i, k, packed + i * stride + j, stride);
    for (int64_t i = whole_k; i < k; ++i) {
      for (int64_t jj = j; jj < j + 8; ++jj) packed[i * stride + jj] = b[jj * k + i];
    }
  }
  for (int64_t j = whole_n; j < n; ++j) {
    for (int64_t i = 0; i < k; ++i) packed[i * stride + j] = b[j * k + i];
  }
}

}  // namespace

void SmallGemm(bool transpose_a, bool transpose_b, int64_t count, int64_t m, int64_t n, int64_t k,
               const float* a, const float* b, float* out, AlignedBuffer& scratch) {
  const int64_t stride = (n + 7) / 8 * 8;
  const bool direct = !transpose_b && stride == n;
  float* packed = nullptr;
  if (!direct) {
    packed = static_cast<float*>(scratch.Reserve(k * stride * sizeof(float)));
    std::memset(packed, 0, k * stride * sizeof(float));  // columns past n stay zero from here on
  }
  const __m256i mask = LaneMask(n % 8 == 0 ? 8 : n % 8);
  const int64_t row_stride = transpose_a ? 1 : k;
  const int64_t k_stride = transpose_a ? m : 1;
  for (int64_t p = 0; p < count; ++p, a += m * k, b += k * n, out += m * n) {
    const float* columns = b;
    if (!direct) {
      Pack(transpose_b, n, k, b, packed, stride);
      columns = packed;
    }
    for (int64_t j = 0; j < n; j += 16) {
      const int vectors = stride - j >= 16 ? 2 : 1;
      const bool masked = j + 8 * vectors > n;
      for (int64_t row = 0; row < m; row += kMaxRows) {
        const int rows = static_cast<int>(m - row < kMaxRows ? m - row : kMaxRows);
        kTiles[vectors - 1][rows - 1](k, a + row * row_stride, row_stride, k_stride, columns + j,
                                      stride, out + row * n + j, n, mask, masked);
      }
    }
  }
}

namespace {

// Rows `row`, row + 1, ... of one triangle: columns from `column` on, at most 8 * kVectors of them.
template <int kRows, int kVectors>
void TriangleTile(int64_t k, const float* x, const float* columns, int64_t stride, int64_t row,
                  int64_t column, float* triangle, const float* end, bool may_run_over) {
  __m256 sum[kRows][kVectors];
  MU_UNROLL
  for (int r = 0; r < kRows; ++r) {
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < k; ++i) {
    __m256 y[kVectors];
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) y[v] = _mm256_loadu_ps(columns + i * stride + 8 * v);
    MU_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m256 factor = _mm256_broadcast_ss(x + (row + r) * k + i);
      MU_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm256_fmadd_ps(factor, y[v], sum[r][v]);
    }
  }
  MU_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int64_t width = row + r - column;  // columns left of the diagonal
    float* const to = triangle + (row + r) * (row + r - 1) / 2 + column;
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const int64_t left = width - 8 * v;
      if (left <= 0) break;
      if (left >= 8 || (may_run_over && to + 8 * v + 8 <= end)) {
        _mm256_storeu_ps(to + 8 * v, sum[r][v]);
      } else {
        _mm256_maskstore_ps(to + 8 * v, LaneMask(left), sum[r][v]);
      }
    }
  }
}

constexpr int kTriangleRows = 3;  // 3 rows of four vectors are 12 accumulators
constexpr int kTriangleVectors = 4;
using TriangleFunction = decltype(&TriangleTile<1, 1>);
constexpr TriangleFunction kTriangles[kTriangleRows][kTriangleVectors] = {
    {TriangleTile<1, 1>, TriangleTile<1, 2>, TriangleTile<1, 3>, TriangleTile<1, 4>},
    {TriangleTile<2, 1>, TriangleTile<2, 2>, TriangleTile<2, 3>, TriangleTile<2, 4>},
    {TriangleTile<3, 1>, TriangleTile<3, 2>, TriangleTile<3, 3>, TriangleTile<3, 4>}};

}  // namespace

void LowerTriangles(int64_t count, int64_t n, int64_t k, const float* x, float* out,
                    AlignedBuffer& scratch) {
  if (n < 2) return;
  constexpr int64_t kColumns = 8 * kTriangleVectors;
  const int64_t stride = (n + 7) / 8 * 8;
  float* const packed = static_cast<float*>(scratch.Reserve(k * stride * sizeof(float)));
  std::memset(packed, 0, k * stride * sizeof(float));
  const int64_t pairs = n * (n - 1) / 2;
  const float* const end = out + count * pairs;
  // What a row writes past its end is overwritten by the rows after it, if they come later.
  const bool may_run_over = n - 1 <= kColumns;
  for (int64_t p = 0; p < count; ++p, x += n * k, out += pairs) {
    Pack(true, n, k, x, packed, stride);
    for (int64_t row = 1; row < n; row += kTriangleRows) {
      const int64_t rows = n - row < kTriangleRows ? n - row : kTriangleRows;
      const int64_t width = row + rows - 1;  // of the tile's last row
      for (int64_t column = 0; column < width; column += kColumns) {
        const int64_t left = width - column < kColumns ? width - column : kColumns;
        kTriangles[rows - 1][(left + 7) / 8 - 1](k, x, packed + column, stride, row, column, out,
                                                 end, may_run_over);
      }
    }
  }
}

}  // namespace mu
