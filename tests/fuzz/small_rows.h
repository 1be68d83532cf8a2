// Any size of a row is legitimate, and takes memory: inputs with large ones show nothing.
#pragma once

#include <cstdint>

#include "common/graph/dataset_schema.h"

namespace mu::fuzzing {

// Of a row of the columns: what an input may make the reader take.
inline constexpr uint64_t kMostRow = 1 << 12;

inline bool HasSmallRows(const muster::DatasetProto& dataset) {
  uint64_t elements = 0;
  for (const muster::ColumnSchema& column : SchemaOf(dataset)) {
    uint64_t of_column = 1;
    for (int i = 1; i < column.shape().dims_size(); ++i) {
      const auto size = static_cast<uint64_t>(column.shape().dims(i));
      if (size > kMostRow) return false;
      of_column *= size;
      if (of_column > kMostRow) return false;
    }
    elements += of_column;
  }
  return elements <= kMostRow;
}

}  // namespace mu::fuzzing
