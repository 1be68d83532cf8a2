#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {
namespace {

Sym Reduce(const char* op, const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  const Sym bound = x.Bind();
  return AddOp(
      op, {bound},
      Attrs().Ints("axes", PositiveAxes(axes, bound.shape().rank())).Bool("keep_dims", keep_dims),
      x.place());
}

// With the attribute "axes" only.
Sym Along(const char* op, const Operand& x, const std::vector<int64_t>& axes) {
  const Sym bound = x.Bind();
  return AddOp(op, {bound}, Attrs().Ints("axes", PositiveAxes(axes, bound.shape().rank())),
               x.place());
}

}  // namespace

Sym ReduceSum(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_sum", x, axes, keep_dims);
}
Sym ReduceMean(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_mean", x, axes, keep_dims);
}
Sym ReduceMax(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_max", x, axes, keep_dims);
}
Sym ReduceMin(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_min", x, axes, keep_dims);
}
Sym ReduceProd(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_prod", x, axes, keep_dims);
}
Sym ReduceAny(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_any", x, axes, keep_dims);
}
Sym ReduceAll(const Operand& x, const std::vector<int64_t>& axes, bool keep_dims) {
  return Reduce("reduce_all", x, axes, keep_dims);
}

Sym Count(const Operand& x, const std::vector<int64_t>& axes) { return Along("count", x, axes); }

Sym ProductsOfOthers(const Operand& x, const std::vector<int64_t>& axes) {
  return Along("products_of_others", x, axes);
}

Sym SumOfSquares(const std::vector<Sym>& values, const char* file, int line) {
  return AddOp("sum_of_squares", values, {}, {file, line});
}

Sym Argmax(const Operand& x, int64_t axis) {
  const Sym bound = x.Bind();
  return AddOp("argmax", {bound}, Attrs().Int("axis", PositiveAxis(axis, bound.shape().rank())),
               x.place());
}

Sym Cumsum(const Operand& x, int64_t axis, CumsumOptions options) {
  const Sym bound = x.Bind();
  return AddOp("cumsum", {bound},
               Attrs()
                   .Int("axis", PositiveAxis(axis, bound.shape().rank()))
                   .Bool("exclusive", options.exclusive)
                   .Bool("reverse", options.reverse),
               x.place());
}

}  // namespace mu
