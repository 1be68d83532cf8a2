#include "coordinator/frontend/op_support.h"
#include "coordinator/frontend/ops.h"

namespace mu {

Sym ExpandDims(const Operand& x, const std::vector<int64_t>& axes) {
  const Sym bound = x.Bind();
  const int rank = bound.shape().rank() + static_cast<int>(axes.size());
  return AddOp("expand_dims", {bound}, Attrs().Ints("axes", PositiveAxes(axes, rank)), x.place());
}

Sym Squeeze(const Operand& x, const std::vector<int64_t>& axes) {
  const Sym bound = x.Bind();
  return AddOp("squeeze", {bound}, Attrs().Ints("axes", PositiveAxes(axes, bound.shape().rank())),
               x.place());
}

Sym Tile(const Operand& x, const std::vector<int64_t>& multiples) {
  return AddOp("tile", {x.Bind()}, Attrs().Ints("multiples", multiples), x.place());
}

Sym TileGrad(const Operand& dy, const Operand& like, const std::vector<int64_t>& multiples) {
  return AddOp("tile_grad", {dy.Bind(), like.Bind()}, Attrs().Ints("multiples", multiples),
               dy.place());
}

Sym Pad(const Operand& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
        float value) {
  return AddOp("pad", {x.Bind()},
               Attrs().Ints("before", before).Ints("after", after).Float("value", value),
               x.place());
}

Sym Unpad(const Operand& dy, const Operand& like, const std::vector<int64_t>& before) {
  return AddOp("unpad", {dy.Bind(), like.Bind()}, Attrs().Ints("before", before), dy.place());
}

Sym StopGradient(const Operand& x) { return Unary("stop_gradient", x); }

Sym PadSequences(const Operand& values, const Operand& splits, int64_t length, bool keep_last) {
  return AddOp("pad_sequences", {values.Bind(), splits.Bind(kInt32)},
               Attrs().Int("length", length).Bool("keep_last", keep_last), values.place());
}

Sym PadSequencesGrad(const Operand& dy, const Operand& splits, const Operand& like, int64_t length,
                     bool keep_last) {
  return AddOp("pad_sequences_grad", {dy.Bind(), splits.Bind(kInt32), like.Bind()},
               Attrs().Int("length", length).Bool("keep_last", keep_last), dy.place());
}

}  // namespace mu
