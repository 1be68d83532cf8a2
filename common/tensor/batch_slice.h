// Parts of a batch.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/tensor/tensor.h"

namespace mu {

// Sets `slice` to the records first .. first + records - 1 of `batch`, which must outlive it: its
// columns are in the batch's memory, but for splits, which begin at 0. Lists are columns X.values,
// X.splits [records + 1] and perhaps X.weights (common/graph/dataset_schema.h). INVALID_ARGUMENT if
// a column has not one entry for each record of the batch, or if splits are none.
absl::Status SliceBatch(const Batch& batch, uint32_t first, uint32_t records, Batch* slice);

}  // namespace mu
