#include "common/client/product_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "common/rpc/frame.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using Pieces = std::vector<ProductPiece>;

constexpr int64_t kRows = 10, kColumns = 5;  // of each partition
constexpr ProductLimits kNone = {.multiply_adds = int64_t{1} << 50, .bytes = size_t{1} << 50};

// All of a variable that one server holds. Nothing reads what they point at.
class Product {
 public:
  Product(uint32_t variable, bool back, int64_t batch, int64_t partitions)
      : x_(batch * std::max(partitions * kRows, kColumns)), out_(x_.size()) {
    for (int64_t p = 0; p < partitions; ++p) {
      pieces_.push_back({variable, static_cast<uint32_t>(p), back, batch, partitions * kRows,
                         kColumns, p * kRows, kRows, x_.data(), out_.data()});
    }
  }
  const Pieces& pieces() const { return pieces_; }
  std::ptrdiff_t XOf(const ProductPiece& piece) const { return piece.x - x_.data(); }
  std::ptrdiff_t OutOf(const ProductPiece& piece) const { return piece.out - out_.data(); }

 private:
  std::vector<float> x_, out_;
  Pieces pieces_;
};

size_t BytesOf(const Pieces& call) {
  size_t bytes = 0;
  for (size_t i = 0; i < call.size(); ++i) {
    bytes += PaddedTo8(OutputBytes(call[i]));
    if (!SharesInput(call, i)) bytes += PaddedTo8(InputBytes(call[i]));
  }
  return bytes;
}

std::vector<int64_t> BatchesOf(const Pieces& call) {
  std::vector<int64_t> batches;
  for (const ProductPiece& piece : call) batches.push_back(piece.batch);
  return batches;
}

TEST(ProductCallsTest, WhatIsWithinTheLimitsIsOneCall) {
  const Product forward(1, false, 40, 3), back(1, true, 40, 3), other(2, false, 7, 2);
  Pieces pieces = forward.pieces();
  pieces.insert(pieces.end(), back.pieces().begin(), back.pieces().end());
  pieces.insert(pieces.end(), other.pieces().begin(), other.pieces().end());
  for (const ProductLimits& limits :
       {ProductLimits{},
        ProductLimits{.multiply_adds = MultiplyAddsOf(pieces), .bytes = BytesOf(pieces)}}) {
    const auto calls = CutIntoCalls(pieces, limits);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_THAT(BatchesOf(calls[0]), ElementsAre(40, 40, 40, 40, 40, 40, 7, 7));
  }
  EXPECT_TRUE(CutIntoCalls({}, {}).empty());
}

TEST(ProductCallsTest, BatchesAreCutFirst) {
  for (const bool back : {false, true}) {
    const Product product(1, back, 100, 4);
    ProductLimits limits = kNone;
    limits.least_records = 2;
    limits.multiply_adds = MultiplyAddsOf(product.pieces()) / 4;
    const auto calls = CutIntoCalls(product.pieces(), limits);
    ASSERT_EQ(calls.size(), 4u);
    for (int64_t c = 0; c < 4; ++c) {
      EXPECT_THAT(BatchesOf(calls[c]), ElementsAre(25, 25, 25, 25));
      for (const ProductPiece& piece : calls[c]) {
        EXPECT_EQ(product.XOf(piece), 25 * c * (back ? 4 * kRows : kColumns));
        EXPECT_EQ(product.OutOf(piece), 25 * c * (back ? kColumns : 4 * kRows));
      }
    }
  }
}

TEST(ProductCallsTest, FewRecordsAreCutAmongPartitions) {
  const Product product(1, false, 63, 4);
  ProductLimits limits = kNone;
  limits.multiply_adds = MultiplyAddsOf(product.pieces()) / 2;
  auto calls = CutIntoCalls(product.pieces(), limits);
  ASSERT_EQ(calls.size(), 2u);
  for (const Pieces& call : calls) EXPECT_THAT(BatchesOf(call), ElementsAre(63, 63));
  limits.multiply_adds = 1;
  calls = CutIntoCalls(product.pieces(), limits);
  ASSERT_EQ(calls.size(), 4u);
  for (const Pieces& call : calls) EXPECT_THAT(BatchesOf(call), ElementsAre(63));
}

// Whatever is cut: each partition gets each record once, calls are within the limits or have one
// piece that cannot be cut, and what is sent once is one x.
TEST(ProductCallsTest, NothingIsLostOrMadeTwice) {
  std::mt19937 random(7);
  const auto between = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    std::vector<Product> products;
    Pieces pieces;
    const int64_t count = between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      products.emplace_back(static_cast<uint32_t>(i), between(0, 1) == 1, between(0, 90),
                            between(1, 5));
      pieces.insert(pieces.end(), products[i].pieces().begin(), products[i].pieces().end());
    }
    const ProductLimits limits = {.multiply_adds = between(1, 8000),
                                  .bytes = static_cast<size_t>(between(1, 8000)),
                                  .least_records = between(2, 10)};
    // Of each piece, the records that were seen.
    std::map<std::pair<uint32_t, uint32_t>, int64_t> seen;
    for (const Pieces& call : CutIntoCalls(pieces, limits)) {
      ASSERT_FALSE(call.empty());
      if (call.size() > 1) {
        EXPECT_LE(MultiplyAddsOf(call), limits.multiply_adds);
        EXPECT_LE(BytesOf(call), limits.bytes);
      }
      for (size_t i = 0; i < call.size(); ++i) {
        const ProductPiece& piece = call[i];
        const Product& product = products[piece.variable];
        const int64_t whole = product.pieces()[0].batch;
        EXPECT_GE(piece.batch, std::min(limits.least_records, whole));
        if (piece.MultiplyAdds() > limits.multiply_adds)
          EXPECT_LT(piece.batch, 2 * std::max(limits.least_records, int64_t{1}));
        int64_t& records = seen[{piece.variable, piece.partition}];
        const int64_t wide = product.pieces().size() * kRows;
        EXPECT_EQ(product.XOf(piece), records * (piece.back ? wide : kColumns));
        EXPECT_EQ(product.OutOf(piece), records * (piece.back ? kColumns : wide));
        records += piece.batch;
        if (SharesInput(call, i)) EXPECT_EQ(piece.x, call[i - 1].x);
      }
    }
    for (const ProductPiece& piece : pieces)
      EXPECT_EQ((seen[{piece.variable, piece.partition}]), piece.batch);
  }
}

}  // namespace
}  // namespace mu
