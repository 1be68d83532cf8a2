// Products of every shape that the blocks, slivers and tiles of the kernels cut differently.
#include "common/exec/gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "common/base/hash.h"
#include "common/exec/gemm_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mu {
namespace {

struct Sizes {
  int64_t m, n, k;
};

// Around 4 and 12 rows, 8, 16, 24 and 32 columns, blocks of 384 columns and 256 of k.
const std::vector<Sizes>& Cases() {
  static const auto* const cases = new std::vector<Sizes>{
      {2, 2, 2},    {3, 5, 7},     {4, 8, 4},     {5, 9, 255},   {11, 15, 256}, {12, 16, 257},
      {13, 17, 64}, {24, 24, 511}, {25, 31, 512}, {7, 32, 513},  {12, 33, 100}, {36, 48, 3},
      {1, 40, 30},  {30, 1, 40},   {30, 40, 1},   {9, 383, 20},  {9, 384, 260}, {14, 385, 258},
      {13, 500, 9}, {2, 769, 5},   {50, 64, 600}, {49, 100, 31}, {27, 27, 16},
  };
  return *cases;
}

std::vector<float> Random(SplitMix& random, int64_t size) {
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(2 * random.Unit() - 1);
  return values;
}

Operand Stored(bool transposed, const std::vector<float>& values, int64_t rows, int64_t columns) {
  return transposed ? Operand{values.data(), 1, rows} : Operand{values.data(), columns, 1};
}

float At(const Operand& x, int64_t row, int64_t column) {
  return x.data[row * x.row_stride + column * x.column_stride];
}

class GemmTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  // Calls visit(sizes, a, b) for every case, operands stored as the parameter says.
  template <typename Visit>
  void ForEach(Visit&& visit) {
    const auto [transpose_a, transpose_b] = GetParam();
    SplitMix random(7);
    for (const Sizes& s : Cases()) {
      SCOPED_TRACE(::testing::Message() << s.m << " x " << s.n << " x " << s.k);
      const std::vector<float> a = Random(random, s.m * s.k), b = Random(random, s.k * s.n);
      visit(s, Stored(transpose_a, a, s.m, s.k), Stored(transpose_b, b, s.k, s.n));
      if (HasFailure()) return;
    }
  }

  // The product by one of the kernels, into memory that is full of NaN.
  std::vector<float> Run(Product* product, const Sizes& s, Operand a, Operand b) {
    std::vector<float> out(s.m * s.n, std::numeric_limits<float>::quiet_NaN());
    product(s.m, s.n, s.k, a, b, out.data(), scratch_.data());
    return out;
  }

 private:
  std::vector<float> scratch_ =
      std::vector<float>(kProductScratch);  // AddressSanitizer sees its end
};

TEST_P(GemmTest, IsTheSumOfProducts) {
  const bool transpose_a = std::get<0>(GetParam()), transpose_b = std::get<1>(GetParam());
  ForEach([&](const Sizes& s, Operand a, Operand b) {
    std::vector<float> out(s.m * s.n);
    Gemm(transpose_a, transpose_b, s.m, s.n, s.k, a.data, b.data, out.data(), Epilogue());
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0, size = 0;
        for (int64_t l = 0; l < s.k; ++l) {
          const double term = double{At(a, i, l)} * At(b, l, j);
          sum += term;
          size += std::fabs(term);
        }
        ASSERT_NEAR(out[i * s.n + j], sum, 1e-6 * size + 1e-12) << i << ", " << j;
      }
    }
  });
}

// The order that gemm_blocked.h promises, which is what makes all processors agree.
TEST_P(GemmTest, SumsBlocksOfDepth256InOrderByFusedMultiplyAdds) {
  ForEach([&](const Sizes& s, Operand a, Operand b) {
    const std::vector<float> out = Run(ProductAvx2, s, a, b);
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        float sum = 0;
        for (int64_t from = 0; from < s.k; from += 256) {
          float block = 0;
          for (int64_t l = from; l < std::min(from + 256, s.k); ++l) {
            block = std::fma(At(a, i, l), At(b, l, j), block);
          }
          sum = from == 0 ? block : sum + block;
        }
        ASSERT_EQ(out[i * s.n + j], sum) << i << ", " << j;
      }
    }
  });
}

TEST_P(GemmTest, AllWidthsGiveTheSameBits) {
  if (!ProcessorHasAvx512()) GTEST_SKIP() << "this processor has no AVX-512";
  ForEach([&](const Sizes& s, Operand a, Operand b) {
    const std::vector<float> narrow = Run(ProductAvx2, s, a, b);
    const std::vector<float> wide = Run(ProductAvx512, s, a, b);
    EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(float)), 0);
  });
}

// What pads a tile must not leak: a NaN spoils its row or column and nothing else.
TEST_P(GemmTest, ANotANumberStaysInItsRowAndColumn) {
  ForEach([&](const Sizes& s, Operand a, Operand b) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    // At the first and the last of k.
    const_cast<float*>(a.data)[(s.m - 1) * a.row_stride] = nan;
    const_cast<float*>(b.data)[(s.n - 1) * b.column_stride + (s.k - 1) * b.row_stride] = nan;
    for (Product* product : {ProductAvx2, ProcessorHasAvx512() ? ProductAvx512 : ProductAvx2}) {
      const std::vector<float> out = Run(product, s, a, b);
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          ASSERT_EQ(std::isnan(out[i * s.n + j]), i == s.m - 1 || j == s.n - 1) << i << ", " << j;
        }
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transposes, GemmTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace mu
