// Columns of parsed records, filled row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/base/status.h"
#include "common/records/field_observer.h"
#include "common/tensor/tensor.h"
#include "proto/dataset.pb.h"

namespace mu {

// Not thread safe; moved into a LeaseData it is only read.
//
// A parser writes the row after the last one (Floats, Ints, Append), then CommitRow() keeps it or
// DropRow() forgets it.
class ColumnSet {
 public:
  // What SchemaOf(dataset) lists: float32 and int64 columns of a fixed size per record;
  // NAME.values, NAME.splits and perhaps NAME.weights are one list column. Room for `capacity` rows
  // is taken at once.
  ColumnSet(const std::vector<muster::ColumnSchema>& schema, uint32_t capacity);

  int columns() const { return static_cast<int>(columns_.size()); }
  uint32_t rows() const { return rows_; }
  size_t bytes() const;

  // Where the row being written has its values of a column that is no list.
  float* Floats(int column) {
    return columns_[column].floats.get() + rows_ * columns_[column].width;
  }
  int64_t* Ints(int column) { return columns_[column].ints.get() + rows_ * columns_[column].width; }
  // Adds to the list of the row being written.
  void Append(int column, int64_t value) { columns_[column].values.push_back(value); }
  void Append(int column, int64_t value, float weight) {
    columns_[column].values.push_back(value);
    columns_[column].weights.push_back(weight);
  }

  // Who sees the fields' values; null, as at first: nobody.
  void set_observer(FieldObserver* observer) { observer_ = observer; }
  FieldObserver* observer() const { return observer_; }

  void CommitRow();
  void DropRow();
  void Clear();  // forgets all rows

  // The named rows as tensors, in that order.
  Batch Gather(absl::Span<const uint32_t> rows) const;

 private:
  struct Column {
    std::string name;  // of a list without ".values"
    Shape row_shape;   // of one record
    size_t width = 1;  // elements per record
    std::unique_ptr<float[]> floats;
    std::unique_ptr<int64_t[]> ints;
    bool is_list = false;
    bool is_weighted = false;
    std::vector<int64_t> values;
    std::vector<float> weights;  // of each value, if the list has any
    std::vector<size_t> ends;    // of each row's list in `values`
  };

  template <typename T>
  static Tensor GatherRows(const Column& column, const T* data, absl::Span<const uint32_t> rows);
  static void GatherLists(const Column& column, absl::Span<const uint32_t> rows, Batch* batch);

  FieldObserver* observer_ = nullptr;
  uint32_t capacity_;
  uint32_t rows_ = 0;
  std::vector<Column> columns_;
  std::vector<int> lists_;  // which columns are lists
};

}  // namespace mu
