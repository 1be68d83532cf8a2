// Initial values as a pure function of (seed, name, row, column): independent of partitions,
// servers, order and libm. Integer hashing and single IEEE operations only, so every machine and
// build computes the same bits.
//
// Immutable after construction, hence thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"

namespace mu {

// INVALID_ARGUMENT if the initializer does not fit the type (random integers) or its numbers are
// not finite.
absl::Status CheckInitializer(const muster::InitializerProto& initializer, muster::DType dtype);

class RowInitializer {
 public:
  RowInitializer() = default;  // zeros
  // `name` is the variable's or the table's.
  RowInitializer(const muster::InitializerProto& proto, const std::string& name);

  // Columns 0 .. columns-1 of a row. A variable's row is its index on axis 0, its columns are the
  // rest, flat.
  void FillRow(uint64_t row, float* out, size_t columns) const;

  // The value that integers begin with.
  int64_t integer() const { return static_cast<int64_t>(a_); }

 private:
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind_ = Kind::kConstant;
  float a_ = 0;  // constant, low or mean
  float b_ = 0;  // width of the uniform's range, or what scales the normal's sum
  uint64_t key_ = 0;
};

}  // namespace mu
