// How the products of a step are cut into calls, so that none takes a server long: a call that
// takes longer than its deadline is made again, and a huge product would never end. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "common/client/update_pieces.h"

namespace mu {

// Of a call to one server.
struct ProductLimits {
  int64_t multiply_adds = 2'000'000'000;  // about a second of a slow core
  size_t bytes = size_t{128} << 20;       // there and back; about a second at 1 Gbit/s
  // Batches are not cut into fewer records: reading a partition takes as long as multiplying it by
  // so many. From 2 on, results have the bits of the whole product; a single record is multiplied
  // in another way.
  int64_t least_records = 32;
};

// The calls for these products of one server, in their order. A product is cut into records, and
// those among its partitions; what is within the limits stays together. A call is beyond them only
// with the least records of one partition.
std::vector<std::vector<ProductPiece>> CutIntoCalls(const std::vector<ProductPiece>& pieces,
                                                    const ProductLimits& limits);

int64_t MultiplyAddsOf(const std::vector<ProductPiece>& pieces);
// What deadlines grow by for products: a server that is no faster than this is taken for one that
// does not answer. A slow core does twenty times as much, so twenty such calls may share one.
constexpr absl::Duration ComputeTimeout(int64_t multiply_adds) {
  return absl::Nanoseconds(10 * multiply_adds);
}

// The same for what travels there and back: slower links, also those that many workers share, are
// taken for broken ones.
constexpr absl::Duration TransferTimeout(size_t bytes) {
  return absl::Microseconds(static_cast<int64_t>(bytes));
}

// Whether the piece has the x of the one before it in a call, which is sent once: the partitions of
// one variable multiply one x.
bool SharesInput(const std::vector<ProductPiece>& pieces, size_t i);
size_t InputBytes(const ProductPiece& piece);
size_t OutputBytes(const ProductPiece& piece);

}  // namespace mu
