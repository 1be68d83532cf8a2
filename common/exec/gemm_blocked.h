// A blocked matrix product over vectors of any width, after Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication" (2008): b is packed into slivers of the tile's columns
// that stay in the second cache (384 KB), a into slivers of its rows that stay in the first, and a
// tile of the result stays in registers while k goes by.
//
// Every element is summed over blocks of kDepth in order, within a block by fused multiply-adds in
// order. Neither the width of vectors nor the shape of tiles changes that, so all widths give the
// same bits.
//
// Included only by gemm_avx*.cc, which are compiled for different processors: nothing here may be
// a function that they share (a linker would keep one of them for all), so everything is in an
// unnamed namespace.
#pragma once

#include <xmmintrin.h>

#include <cstdint>

#include "common/exec/gemm_kernels.h"
#include "common/exec/loops.h"

namespace mu {
namespace {

constexpr int64_t kDepth = 256;   // of k, packed and summed at a time
constexpr int64_t kAcross = 384;  // of n, packed at a time; a multiple of every tile's columns

// Lanes [0, lanes) of `from` next to each other for each of `depth` steps, then zeros up to `width`
// (a multiple of 4): to[i * width + lane] = from[lane * lane_stride + i * step].
inline void Pack(const float* from, int64_t lane_stride, int64_t step, int64_t lanes, int64_t depth,
                 int64_t width, float* to) {
  const int64_t whole = lanes / 4 * 4;
  int64_t i = 0;
  if (lane_stride == 1) {
    for (; i < depth; ++i) {
      for (int64_t lane = 0; lane < whole; lane += 4) {
        _mm_storeu_ps(to + i * width + lane, _mm_loadu_ps(from + i * step + lane));
      }
    }
  } else if (step == 1) {
    for (; i + 4 <= depth; i += 4) {
      for (int64_t lane = 0; lane < whole; lane += 4) {
        const float* const corner = from + lane * lane_stride + i;
        __m128 r0 = _mm_loadu_ps(corner), r1 = _mm_loadu_ps(corner + lane_stride);
        __m128 r2 = _mm_loadu_ps(corner + 2 * lane_stride);
        __m128 r3 = _mm_loadu_ps(corner + 3 * lane_stride);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        _mm_storeu_ps(to + i * width + lane, r0);
        _mm_storeu_ps(to + (i + 1) * width + lane, r1);
        _mm_storeu_ps(to + (i + 2) * width + lane, r2);
        _mm_storeu_ps(to + (i + 3) * width + lane, r3);
      }
    }
  }
  for (; i < depth; ++i) {
    for (int64_t lane = 0; lane < whole; ++lane) {
      to[i * width + lane] = from[lane * lane_stride + i * step];
    }
  }
  if (whole == width) return;
  for (i = 0; i < depth; ++i) {
    for (int64_t lane = whole; lane < width; ++lane) {
      to[i * width + lane] = lane < lanes ? from[lane * lane_stride + i * step] : 0.0f;
    }
  }
}

// A tile of V::kRows rows and kVectors vectors, of which [rows, columns] are stored: the sum over
// `depth`, added to what is there unless `first`.
template <typename V, int kVectors>
void Tile(int64_t depth, const float* a, const float* b, float* out, int64_t out_stride,
          int64_t rows, int64_t columns, bool first) {
  typename V::Type sum[V::kRows][kVectors];
  MU_UNROLL
  for (int r = 0; r < V::kRows; ++r) {
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) sum[r][v] = V::Zero();
  }
  for (int64_t i = 0; i < depth; ++i) {
    typename V::Type y[kVectors];
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) y[v] = V::Load(b + (i * kVectors + v) * V::kWidth);
    MU_UNROLL
    for (int r = 0; r < V::kRows; ++r) {
      const typename V::Type x = V::Broadcast(a[i * V::kRows + r]);
      MU_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = V::MultiplyAdd(x, y[v], sum[r][v]);
    }
  }
  alignas(64) float edge[V::kRows * kVectors * V::kWidth];
  const bool whole = rows == V::kRows && columns == kVectors * V::kWidth;
  float* const to = whole ? out : edge;
  const int64_t stride = whole ? out_stride : kVectors * V::kWidth;
  MU_UNROLL
  for (int r = 0; r < V::kRows; ++r) {
    MU_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* const x = to + r * stride + v * V::kWidth;
      V::Store(x, whole && !first ? V::Add(V::Load(x), sum[r][v]) : sum[r][v]);
    }
  }
  if (whole) return;
  for (int64_t r = 0; r < rows; ++r) {
    float* const x = out + r * out_stride;
    const float* const y = edge + r * stride;
    for (int64_t j = 0; j < columns; ++j) x[j] = first ? y[j] : x[j] + y[j];
  }
}

template <typename V>
void BlockedProduct(int64_t m, int64_t n, int64_t k, Operand a, Operand b, float* out,
                    float* scratch) {
  constexpr int64_t kColumns = V::kVectors * V::kWidth;
  static_assert(kAcross % kColumns == 0 && V::kRows <= 16 && V::kRows % 4 == 0);
  static_assert((kAcross + 16) * kDepth == kProductScratch);
  float* const packed_a = scratch + kAcross * kDepth;
  for (int64_t left = 0; left < n; left += kAcross) {
    const int64_t across = n - left < kAcross ? n - left : kAcross;
    for (int64_t from = 0; from < k; from += kDepth) {
      const int64_t depth = k - from < kDepth ? k - from : kDepth;
      const float* const b_block = b.data + from * b.row_stride + left * b.column_stride;
      // The last sliver has no more vectors than it needs.
      auto vectors = [&](int64_t j) {
        return across - j < kColumns ? (across - j + V::kWidth - 1) / V::kWidth : V::kVectors;
      };
      for (int64_t j = 0; j < across; j += kColumns) {
        const int64_t width = vectors(j) * V::kWidth;
        Pack(b_block + j * b.column_stride, b.column_stride, b.row_stride,
             across - j < width ? across - j : width, depth, width, scratch + j * depth);
      }
      for (int64_t row = 0; row < m; row += V::kRows) {
        const int64_t rows = m - row < V::kRows ? m - row : V::kRows;
        Pack(a.data + row * a.row_stride + from * a.column_stride, a.row_stride, a.column_stride,
             rows, depth, V::kRows, packed_a);
        for (int64_t j = 0; j < across; j += kColumns) {
          const int64_t count = vectors(j), columns = across - j < kColumns ? across - j : kColumns;
          const auto tile = count == 1 ? Tile<V, 1> : count == 2 ? Tile<V, 2> : Tile<V, 3>;
          tile(depth, packed_a, scratch + j * depth, out + row * n + left + j, n, rows, columns,
               from == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace mu
