// Datasets of records that the program itself has: tensors, or what a function makes.
//
// The records travel to the workers with the dataset, so they need no file that all machines see.
// They are read as files are: shuffled, selected, each exactly once an epoch, whatever fails. A
// program that is started again must give the same records, as it must name the same files. The
// limit is kMaxInlineBytes for each dataset; what is larger belongs into files (mu::Npy).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "coordinator/frontend/dataset_spec.h"

namespace mu {

// As NumPy's files, heads included.
inline constexpr uint64_t kMaxInlineBytes = uint64_t{64} << 20;

// Columns by name: float32 or int64 [records, ...], int64 from 0. The tensors are copied.
DatasetSpec FromTensors(const std::vector<std::pair<std::string, Tensor>>& columns);

struct MemoryColumn {
  std::string name;
  DType dtype = kFloat32;  // or kInt64
  Shape shape = {};        // of one record
};

// Where a generator puts its next record.
class GeneratedRecord {
 public:
  // Of the column with this index; all zeros before.
  absl::Span<float> Floats(size_t column);
  absl::Span<int64_t> Ints(size_t column);

 private:
  friend DatasetSpec FromGenerator(const std::vector<MemoryColumn>&,
                                   const std::function<bool(GeneratedRecord&)>&);
  struct Column {
    size_t width = 1;
    std::vector<float> floats;
    std::vector<int64_t> ints;
  };
  std::vector<Column> columns_;
};

// Calls `generate` for one record after the other, here and now, until it returns false; what it
// wrote in that call is dropped.
DatasetSpec FromGenerator(const std::vector<MemoryColumn>& columns,
                          const std::function<bool(GeneratedRecord&)>& generate);

}  // namespace mu
