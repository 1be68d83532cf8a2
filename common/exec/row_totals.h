// The gradients of a table's rows, added up over the slices of a batch. Private to common/exec.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/exec/aligned_buffer.h"
#include "common/exec/id_table.h"
#include "common/exec/kernel.h"

namespace mu {

// Memory stays from step to step, as large as the rows of the largest step.
class RowTotals {
 public:
  // With `keep_rows`, the rows as the first slice that has them saw them.
  RowTotals(int64_t dim, bool keep_rows) : dim_(dim), keep_rows_(keep_rows) {}

  void Begin();
  // Adds `weight` times a slice's gradients [U, dim] of rows [U, dim]. Its ids [U] are distinct.
  // INVALID_ARGUMENT for other shapes, RESOURCE_EXHAUSTED if there is no memory for them.
  absl::Status Add(const View& ids, const View& gradients, const View& rows, float weight);

  // Of all slices: the distinct ids [V] in order of first appearance, gradients and rows [V, dim].
  // Until the next Begin.
  View ids() const;
  View gradients() const;
  View rows() const;

 private:
  // Room for so many rows; what is there stays.
  absl::Status Grow(int64_t rows);

  const int64_t dim_;
  const bool keep_rows_;
  int64_t count_ = 0;
  int64_t capacity_ = 0;
  AlignedBuffer ids_, gradients_, rows_, table_memory_;
  uint64_t tables_ = 0;
  std::optional<IdTable> table_;
};

}  // namespace mu
