// A partition's part of what steps do with variables beyond reading and adding to them whole:
// additions to rows, and products of a batch with a float32 variable [n, k] (ProductRead).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/frame.h"
#include "common/sharding/parameter_access.h"
#include "common/sharding/routing.h"
#include "proto/psserver.pb.h"

namespace mu {

struct ScatterPiece {
  muster::VariableUpdate::Kind kind;
  uint32_t variable;
  uint32_t partition;
  size_t row_bytes;
  const char* from;             // all rows of the write
  std::vector<int64_t> rows;    // in the partition
  std::vector<size_t> origins;  // of each, its position in the write

  size_t bytes() const {
    return rows.size() * sizeof(int64_t) + PaddedTo8(rows.size() * row_bytes);
  }
  void Describe(muster::VariableUpdate* update) const;
  char* Write(char* to) const;  // returns the end
};

// Adds the pieces of a kScatterAdd or kScatterUpdate, by server. OUT_OF_RANGE (ERROR_USER) naming
// the variable and a row that it does not have.
absl::Status AddScatters(const VariableRoute& route, const VariableWrite& write,
                         std::vector<std::vector<ScatterPiece>>* pieces);

struct ProductPiece {
  uint32_t variable;
  uint32_t partition;
  bool back;
  int64_t batch;
  int64_t rows;                  // of the variable: n
  int64_t columns;               // k
  int64_t first_row, part_rows;  // of the partition
  const float* x;                // as of ProductRead
  float* out;
  const float* other = nullptr;  // of a gradient: x [batch, k], where `x` is dy

  size_t NarrowBytes() const { return static_cast<size_t>(batch * part_rows) * sizeof(float); }
  size_t WideBytes() const { return static_cast<size_t>(batch * columns) * sizeof(float); }
  int64_t MultiplyAdds() const { return batch * part_rows * columns; }
  // The same for some records of the batch. Not of a gradient, which is a sum over all of them.
  ProductPiece Records(int64_t first, int64_t count) const;
  // The partition's columns of `from` [batch, rows] as [batch, part_rows]; and back.
  void TakeColumns(const float* from, char* to) const;
  void PutColumns(const char* from, float* to) const;
  void Describe(muster::VariableUpdate* update) const;
};

// Adds the pieces of a product, by server, in the order of the partitions.
void AddProducts(const VariableRoute& route, const ProductRead& product,
                 std::vector<std::vector<ProductPiece>>* pieces);
// The payload of gradients that go to one server: dy's columns, and x once for each variable.
size_t GradientBytes(const std::vector<ProductPiece>& pieces);
char* WriteGradients(const std::vector<ProductPiece>& pieces, char* to);

}  // namespace mu
