// The one table of ops: what exists, and for each op its arity, attributes, types and shapes.
//
// The front end, autodiff, passes, verifier and kernels all go by it. Immutable once built; safe
// from all threads.
//
// In the reference below `x: T[...]` is an input, `-> ` the outputs, {...} the attributes; `=`
// gives a default. "numeric" is float32, int32, int64. Sizes that meet must be equal where both are
// known; where one is not, the kernel checks.
//
// Sources (no inputs)
//   constant{value: tensor} -> the value
//   arg{index: int, dtype} -> T[]                     scalar number `index` of FunctionProto.args
//   worker_index{} -> int64[]
//   batch_column{column: string, dtype, shape} -> T[shape]      a column of the step's batch;
//   shape[0] is -1 variable_read{variable: string, id: int, dtype, shape} -> T[shape]
//
// Elementwise. Two inputs of one type are broadcast as numpy does (aligned at the last axis, 1
// stretches).
//   add subtract multiply maximum minimum (a, b: numeric);  divide (a, b: float32)
//   greater (a, b: numeric) -> bool;  equal (a, b: numeric, uint8 or bool) -> bool
//   negate (x: numeric);  relu sigmoid tanh log exp sqrt square (x: float32)
//   cast{dtype}(x: any)   float to integer: towards zero, saturating, NaN is 0; integer to integer:
//   wraps; to bool: != 0 sigmoid_cross_entropy(logits, labels: float32, one shape; no broadcasting)
//       = max(x, 0) - x * z + log1p(exp(-|x|))
//
// Products and sums
//   matmul{transpose_a=false, transpose_b=false}(a: float32[m, k], b: float32[k, n]) -> float32[m,
//   n] batch_matmul{transpose_a=false, transpose_b=false}(a: float32[b, m, k], b: float32[b, k, n])
//   -> float32[b, m, n] reduce_sum{axes: ints = all, keep_dims=false}(x: numeric)      axes are >=
//   0, distinct; an empty list means all reduce_mean{axes: ints = all, keep_dims=false}(x: float32)
//   of no elements: 0 mean_squared_error(predictions, targets: float32, one shape) -> float32[] of
//   no elements: 0 count{axes: ints = all}(x: any) -> float32[]      product of x's sizes along
//   axes, at least 1
//
// Moving data (x: any type)
//   concat{axis}(x0, x1, ...: one type; equal sizes but along axis)
//   slice{begin: ints, size: ints}(x)      one entry per axis; size -1: to the end
//   reshape{shape}(x)                      at most one -1, found from the rest
//   transpose{perm: ints}(x)               output axis i is input axis perm[i]
//   gather{axis=0}(params, indices: int32 or int64, any rank)
//       -> params' sizes with `axis` replaced by indices' sizes. OUT_OF_RANGE for an index outside
//       [0, size)
//   zeros_like(x: numeric) ones_like(x: numeric)
//
// What gradients are made of (`like` inputs give only their shape, their elements are not read)
//   relu_grad(dy, y: float32, one shape) -> dy where y > 0, else 0;  y is relu's output
//   broadcast_like{axes: ints = none}(x, like: any type)
//       -> x's type, like's shape: x gets an axis of size 1 at each of `axes` (positions in like),
//       then numpy broadcasting
//   reduce_to_like(x: numeric, like: any type) -> x's type, like's shape: sums over the axes that
//   broadcasting like to
//       x's shape would stretch or add (in row-major order of x). Equal shapes: x itself
//   reshape_like(x, like: any type) -> x's elements in like's shape
//   slice_grad{begin: ints}(dy: float32, like) -> like's shape: dy at begin, zero elsewhere
//   concat_piece{axis, index: int}(dy, x0, x1, ...)
//       -> that part of dy along axis which x`index` would be in concat(x0, x1, ...); only the x's
//       shapes are read
//   gather_grad{axis=0}(dy: float32, indices: int32 or int64, like) -> like's shape: zeros, plus
//   each slice of dy added
//       at its index along axis, in the order of the indices. OUT_OF_RANGE as gather
//
// Parameters, as traced
//   assign_add{variable: string, id: int, dtype, shape}(delta: T[shape])         effect, no outputs
//   apply_gradient{variable: string, id: int, dtype, shape}(grad: float32[shape])   effect, no
//   outputs embedding_lookup{table: string, id: int, rows: int, dim: int, combiner: string =
//   "none"}
//       combiner none: (ids: int32 or int64 [...]) -> float32[..., dim]
//       sum, mean:     (values: int32 or int64 [n], splits: int32[batch + 1] [, weights:
//       float32[n]]) -> float32[batch, dim] bag b is values[splits[b] : splits[b + 1]]; splits
//       start at 0, never fall and end at n. mean: the (weighted) sum divided by the bag's size
//       (sum of weights). An empty bag, or one whose weights add up to 0, gives zeros. traced_only
//   embedding_gradient{as embedding_lookup}(the same inputs..., grad: float32, the lookup's shape)
//       effect, no outputs, traced_only
//
// Parameters, as lowered by coordinator/passes (internal). A function has at most one pull_rows and
// one push_rows per table, on the outputs of one unique.
//   unique(ids0, ids1, ...: int32 or int64 [...])
//       -> int64[U]: the distinct ids in order of first appearance (ids0 row-major, then ids1,
//       ...); then per input
//          int32 of its shape: where its ids are among them
//   pull_rows{table: string, id: int, rows: int, dim: int}(ids: int64[U]) -> float32[U, dim]
//   segment_combine{combiner: string}(rows: float32[U, dim], positions: int32[n], splits:
//   int32[batch + 1]
//       [, weights: float32[n]]) -> float32[batch, dim]      bags of rows[positions], as in
//       embedding_lookup
//   segment_combine_grad{combiner: string}(dy: float32[batch, dim], positions, splits, like:
//   float32[U, dim] [, weights])
//       -> float32[U, dim]: zeros, plus per value, in order, its share of its bag's dy at its
//       position:
//          sum: dy[b] * w, mean: dy[b] * w / (sum of the bag's w); w = 1 without weights
//   push_rows{table: string, id: int, rows: int, dim: int}(ids: int64[U], grad: float32[U, dim])
//   effect, no outputs
//
// Gradients of rows that `gather` (axis 0) took from pull_rows are gather_grad with pull_rows'
// output as `like`; those of several lookups are added up with add, in the order of the lookups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/graph/op_def.h"

namespace mu {

class OpTable {
 public:
  // An op that is there already is a bug of ours (it aborts).
  void Add(OpDef def);

  // Null if there is no such op.
  const OpDef* Find(absl::string_view name) const;

  // INVALID_ARGUMENT: no such op, with the nearest name.
  absl::StatusOr<const OpDef*> Get(absl::string_view name) const;

  std::vector<const OpDef*> All() const;  // sorted by name

 private:
  std::map<std::string, OpDef, std::less<>> ops_;
};

// All ops of Muster.
const OpTable& AllOps();

}  // namespace mu
