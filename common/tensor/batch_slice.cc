#include "common/tensor/batch_slice.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"

namespace mu {
namespace {

// Entries first .. first + count - 1 along the first axis.
Tensor Entries(const Tensor& column, int64_t first, int64_t count) {
  Shape shape = column.shape();
  const size_t entry = shape[0] == 0 ? 0 : column.bytes() / static_cast<size_t>(shape[0]);
  shape[0] = count;
  char* const data = static_cast<char*>(const_cast<void*>(column.raw()));
  return Tensor(column.dtype(), std::move(shape), nullptr,
                data + static_cast<size_t>(first) * entry);
}

bool IsSplits(const Batch& batch, size_t column) {
  const Tensor& tensor = batch.columns[column];
  return absl::EndsWith(batch.names[column], ".splits") && tensor.dtype() == kInt32 &&
         tensor.shape().rank() == 1 && tensor.shape()[0] == int64_t{batch.records} + 1;
}

// The splits of the list that the column is the values or weights of; null: of none.
const Tensor* SplitsOf(const Batch& batch, size_t column) {
  absl::string_view list = batch.names[column];
  if (!absl::ConsumeSuffix(&list, ".values") && !absl::ConsumeSuffix(&list, ".weights"))
    return nullptr;
  for (size_t i = 0; i < batch.names.size(); ++i) {
    if (IsSplits(batch, i) && absl::StripSuffix(batch.names[i], ".splits") == list)
      return &batch.columns[i];
  }
  return nullptr;
}

absl::Status ColumnError(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("column \"", name, "\" of the batch ", what));
}

Tensor SliceOfSplits(const Tensor& splits, uint32_t first, uint32_t records) {
  Tensor slice(kInt32, {int64_t{records} + 1});
  const int32_t* const from = splits.data<int32_t>() + first;
  for (uint32_t i = 0; i <= records; ++i) slice.data<int32_t>()[i] = from[i] - from[0];
  return slice;
}

}  // namespace

absl::Status SliceBatch(const Batch& batch, uint32_t first, uint32_t records, Batch* slice) {
  slice->records = records;
  slice->names = batch.names;
  slice->columns.clear();
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    const Tensor& column = batch.columns[i];
    const std::string& name = batch.names[i];
    if (column.shape().rank() == 0) return ColumnError(name, "has no axis of records");
    if (IsSplits(batch, i)) {
      slice->columns.push_back(SliceOfSplits(column, first, records));
      continue;
    }
    int64_t begin = first, end = int64_t{first} + records, all = batch.records;
    if (const Tensor* const splits = SplitsOf(batch, i)) {
      begin = splits->data<int32_t>()[begin];
      end = splits->data<int32_t>()[end];
      all = splits->data<int32_t>()[batch.records];
    }
    if (column.shape()[0] != all || begin < 0 || begin > end || end > all) {
      return ColumnError(
          name, absl::StrCat("has ", column.shape()[0], " entries, which are not those of its ",
                             batch.records, " records"));
    }
    slice->columns.push_back(Entries(column, begin, end - begin));
  }
  return absl::OkStatus();
}

}  // namespace mu
