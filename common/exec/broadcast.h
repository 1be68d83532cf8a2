// Numpy's broadcasting rules, as loops: two shapes become few axes with strides, neighbouring axes
// merged, so that a scalar, a row, a column and equal shapes each end in one tight inner loop.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"

namespace mu {

inline constexpr int kMaxBroadcastAxes = 16;

struct BroadcastPlan {
  Shape out;
  int rank = 0;  // at least 1; axis rank-1 is the inner loop
  int64_t size[kMaxBroadcastAxes];
  int64_t stride_a[kMaxBroadcastAxes];  // in elements; 0 where that operand is repeated
  int64_t stride_b[kMaxBroadcastAxes];
};

// INVALID_ARGUMENT if the shapes do not broadcast.
absl::StatusOr<BroadcastPlan> PlanBroadcast(const Shape& a, const Shape& b);

// Calls inner(out_offset, a_offset, b_offset) once for each inner row of the plan.
template <typename Inner>
void ForEachInnerRow(const BroadcastPlan& plan, Inner&& inner) {
  const int outer = plan.rank - 1;
  const int64_t n = plan.size[outer];
  int64_t index[kMaxBroadcastAxes] = {};
  int64_t a = 0, b = 0, out = 0, rows = 1;
  for (int axis = 0; axis < outer; ++axis) rows *= plan.size[axis];
  if (n == 0) return;
  for (int64_t row = 0; row < rows; ++row) {
    inner(out, a, b);
    out += n;
    for (int axis = outer - 1; axis >= 0; --axis) {
      a += plan.stride_a[axis];
      b += plan.stride_b[axis];
      if (++index[axis] < plan.size[axis]) break;
      index[axis] = 0;
      a -= plan.stride_a[axis] * plan.size[axis];
      b -= plan.stride_b[axis] * plan.size[axis];
    }
  }
}

}  // namespace mu
