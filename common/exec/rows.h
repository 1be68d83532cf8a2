// A tensor seen as rows along its last axis.
#pragma once

#include <cstdint>

#include "common/tensor/shape.h"

namespace mu {

struct Rows {
  int64_t count = 1;
  int64_t width = 1;
};

inline Rows RowsOf(const Shape& shape) {
  Rows rows;
  for (int i = 0; i + 1 < shape.rank(); ++i) rows.count *= shape[i];
  rows.width = shape[shape.rank() - 1];
  return rows;
}

}  // namespace mu
