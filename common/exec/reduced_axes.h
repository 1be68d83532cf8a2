// The shapes of a reduction: which axes its attributes "axes" and "keep_dims" leave.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace mu {

class ReducedAxes {
 public:
  // No axes: all of `rank`.
  ReducedAxes(absl::Span<const int64_t> axes, int rank, bool keep_dims)
      : reduced_(rank, axes.empty()), keep_dims_(keep_dims) {
    for (const int64_t axis : axes) reduced_[axis] = true;
  }

  struct Shapes {
    Shape kept;         // with axes of size 1, to broadcast
    Shape out;          // as the output has it
    int64_t count = 1;  // elements of x for each of the output
  };
  Shapes Of(const Shape& x) const {
    Shapes shapes;
    for (int i = 0; i < x.rank(); ++i) {
      shapes.kept.Append(reduced_[i] ? 1 : x[i]);
      if (reduced_[i]) shapes.count *= x[i];
      if (!reduced_[i] || keep_dims_) shapes.out.Append(reduced_[i] ? 1 : x[i]);
    }
    return shapes;
  }

 private:
  std::vector<bool> reduced_;
  bool keep_dims_;
};

}  // namespace mu
