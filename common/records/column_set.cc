#include "common/records/column_set.h"

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace mu {
namespace {

// CheckFieldColumns refuses a column of its own that has this name and form.
bool IsWeightsOf(const std::string& list, const pb::ColumnSchema& proto) {
  return proto.name() == list + ".weights" && proto.dtype() == kFloat32 &&
         proto.shape().dims_size() == 1;
}

}  // namespace

ColumnSet::ColumnSet(const std::vector<pb::ColumnSchema>& schema, uint32_t capacity)
    : capacity_(capacity) {
  for (size_t i = 0; i < schema.size(); ++i) {
    const pb::ColumnSchema& proto = schema[i];
    Column column;
    column.name = proto.name();
    for (int axis = 1; axis < proto.shape().dims_size(); ++axis) {
      column.row_shape.Append(proto.shape().dims(axis));
    }
    column.width = static_cast<size_t>(column.row_shape.elements());
    if (i + 1 < schema.size() && schema[i + 1].dtype() == kInt32) {
      column.name = std::string(absl::StripSuffix(column.name, ".values"));
      column.is_list = true;
      ++i;  // NAME.splits
      column.is_weighted = i + 1 < schema.size() && IsWeightsOf(column.name, schema[i + 1]);
      if (column.is_weighted) ++i;
      column.ends.reserve(capacity);
      lists_.push_back(columns());
    } else if (proto.dtype() == kFloat32) {
      column.floats.reset(new float[column.width * capacity]);
    } else {
      MU_CHECK(proto.dtype() == kInt64);
      column.ints.reset(new int64_t[column.width * capacity]);
    }
    columns_.push_back(std::move(column));
  }
}

size_t ColumnSet::bytes() const {
  size_t bytes = 0;
  for (const Column& column : columns_) {
    if (column.floats != nullptr) bytes += column.width * capacity_ * sizeof(float);
    if (column.ints != nullptr) bytes += column.width * capacity_ * sizeof(int64_t);
    bytes += column.values.capacity() * sizeof(int64_t) + column.ends.capacity() * sizeof(size_t) +
             column.weights.capacity() * sizeof(float);
  }
  return bytes;
}

void ColumnSet::CommitRow() {
  MU_CHECK(rows_ < capacity_);
  for (int list : lists_) columns_[list].ends.push_back(columns_[list].values.size());
  ++rows_;
}

void ColumnSet::DropRow() {
  for (int list : lists_) {
    Column& column = columns_[list];
    column.values.resize(column.ends.empty() ? 0 : column.ends.back());
    if (column.is_weighted) column.weights.resize(column.values.size());
  }
}

void ColumnSet::Clear() {
  rows_ = 0;
  for (int list : lists_) {
    columns_[list].ends.clear();
    columns_[list].values.clear();
    columns_[list].weights.clear();
  }
}

template <typename T>
Tensor ColumnSet::GatherRows(const Column& column, const T* data, absl::Span<const uint32_t> rows) {
  Shape shape({static_cast<int64_t>(rows.size())});
  for (int64_t size : column.row_shape) shape.Append(size);
  Tensor tensor(DTypeOf<T>::value, std::move(shape));
  if (rows.empty()) return tensor;
  T* out = tensor.data<T>();
  if (column.width == 1) {
    for (uint32_t row : rows) *out++ = data[row];
    return tensor;
  }
  constexpr size_t kAhead = 8;  // rows lie scattered in memory that no cache holds
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) {
      const T* next = data + rows[i + kAhead] * column.width;
      for (size_t offset = 0; offset < column.width; offset += 64 / sizeof(T)) {
        __builtin_prefetch(next + offset);
      }
    }
    std::memcpy(out, data + rows[i] * column.width, column.width * sizeof(T));
    out += column.width;
  }
  return tensor;
}

void ColumnSet::GatherLists(const Column& column, absl::Span<const uint32_t> rows, Batch* batch) {
  const auto begin = [&](uint32_t row) { return row == 0 ? 0 : column.ends[row - 1]; };
  Tensor splits(kInt32, {static_cast<int64_t>(rows.size()) + 1});
  int32_t* split = splits.data<int32_t>();
  *split = 0;
  for (uint32_t row : rows) {
    split[1] = split[0] + static_cast<int32_t>(column.ends[row] - begin(row));
    ++split;
  }
  const int64_t count = *split;
  Tensor values(kInt64, {count});
  int64_t* out = values.data<int64_t>();
  for (uint32_t row : rows) {
    out = std::copy(column.values.begin() + begin(row), column.values.begin() + column.ends[row],
                    out);
  }
  batch->names.push_back(absl::StrCat(column.name, ".values"));
  batch->columns.push_back(std::move(values));
  batch->names.push_back(absl::StrCat(column.name, ".splits"));
  batch->columns.push_back(std::move(splits));
  if (!column.is_weighted) return;
  Tensor weights(kFloat32, {count});
  float* weight = weights.data<float>();
  for (uint32_t row : rows) {
    weight = std::copy(column.weights.begin() + begin(row),
                       column.weights.begin() + column.ends[row], weight);
  }
  batch->names.push_back(absl::StrCat(column.name, ".weights"));
  batch->columns.push_back(std::move(weights));
}

Batch ColumnSet::Gather(absl::Span<const uint32_t> rows) const {
  Batch batch;
  batch.records = static_cast<uint32_t>(rows.size());
  for (const Column& column : columns_) {
    if (column.is_list) {
      GatherLists(column, rows, &batch);
      continue;
    }
    batch.names.push_back(column.name);
    batch.columns.push_back(column.floats != nullptr ? GatherRows(column, column.floats.get(), rows)
                                                     : GatherRows(column, column.ints.get(), rows));
  }
  return batch;
}

}  // namespace mu
