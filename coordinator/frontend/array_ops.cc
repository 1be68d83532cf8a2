#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {

Sym Concat(const std::vector<Sym>& parts, int64_t axis, const char* file, int line) {
  const int rank = parts.empty() ? 0 : parts[0].shape().rank();
  return AddOp("concat", parts, Attrs().Int("axis", PositiveAxis(axis, rank)), {file, line});
}

Sym Slice(const Operand& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& size) {
  return AddOp("slice", {x.Bind()}, Attrs().Ints("begin", begin).Ints("size", size), x.place());
}

Sym Reshape(const Operand& x, const Shape& shape) {
  return AddOp("reshape", {x.Bind()}, Attrs().Dims("shape", shape), x.place());
}

Sym Transpose(const Operand& x, const std::vector<int64_t>& perm) {
  const Sym bound = x.Bind();
  return AddOp("transpose", {bound}, Attrs().Ints("perm", PositiveAxes(perm, bound.shape().rank())),
               x.place());
}

Sym Gather(const Operand& params, const Operand& indices, int64_t axis) {
  const Sym bound = params.Bind();
  return AddOp("gather", {bound, indices.Bind(kInt64)},
               Attrs().Int("axis", PositiveAxis(axis, bound.shape().rank())), params.place());
}

Sym ZerosLike(const Operand& x) { return AddOp("zeros_like", {x.Bind()}, {}, x.place()); }
Sym OnesLike(const Operand& x) { return AddOp("ones_like", {x.Bind()}, {}, x.place()); }

Sym ConstantTensor(const Tensor& value, const char* file, int line) {
  return AddOp("constant", {}, Attrs().Value("value", value.ToProto()), {file, line});
}

Sym ReshapeLike(const Operand& x, const Operand& like) {
  return AddOp("reshape_like", {x.Bind(), like.Bind()}, {}, x.place());
}

Sym SliceGrad(const Operand& dy, const Operand& like, const std::vector<int64_t>& begin) {
  return AddOp("slice_grad", {dy.Bind(), like.Bind()}, Attrs().Ints("begin", begin), dy.place());
}

Sym ConcatPiece(const Operand& dy, const std::vector<Sym>& parts, int64_t axis, int64_t index) {
  const Sym bound = dy.Bind();
  std::vector<Sym> inputs = {bound};
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  return AddOp("concat_piece", inputs,
               Attrs().Int("axis", PositiveAxis(axis, bound.shape().rank())).Int("index", index),
               dy.place());
}

Sym GatherGrad(const Operand& dy, const Operand& indices, const Operand& like, int64_t axis) {
  return AddOp("gather_grad", {dy.Bind(), indices.Bind(kInt64), like.Bind()},
               Attrs().Int("axis", axis), dy.place());
}

}  // namespace mu
