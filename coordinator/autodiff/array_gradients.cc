// Rules of ops that move data.
#include "coordinator/autodiff/gradient_support.h"

namespace mu {
namespace {

// Each part's piece of dy. Slices where the sizes are known, so that the parts need not be kept for
// their shapes.
Syms ConcatRule(const ForwardOp& op) {
  const int axis = static_cast<int>(op.attrs.Int("axis"));
  bool known = true;
  for (const Sym& part : op.inputs) known = known && part.shape()[axis] >= 0;
  Syms gradients(op.inputs.size());
  std::vector<int64_t> begin(op.dy.shape().rank(), 0);
  std::vector<int64_t> size(op.dy.shape().rank(), -1);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (known) size[axis] = op.inputs[i].shape()[axis];
    if (op.Wants(i)) {
      gradients[i] = known ? Slice(op.dy, begin, size)
                           : ConcatPiece(op.dy, op.inputs, axis, static_cast<int64_t>(i));
    }
    if (known) begin[axis] += size[axis];
  }
  return gradients;
}

Syms SliceRule(const ForwardOp& op) {
  return {SliceGrad(op.dy, op.inputs[0], IntsOf(op, "begin"))};
}
Syms ReshapeRule(const ForwardOp& op) { return {ReshapeLike(op.dy, op.inputs[0])}; }

Syms TransposeRule(const ForwardOp& op) {
  const std::vector<int64_t> perm = IntsOf(op, "perm");
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<int64_t>(i);
  return {Transpose(op.dy, inverse)};
}

Syms GatherRule(const ForwardOp& op) {
  return {GatherGrad(op.dy, op.inputs[1], op.inputs[0], op.attrs.Int("axis")), Sym()};
}

Syms BroadcastLikeRule(const ForwardOp& op) {
  const std::vector<int64_t> axes = IntsOf(op, "axes");
  const Sym narrowed = axes.empty() ? op.dy : ReduceSum(op.dy, axes);
  return {op.Wants(0) ? ReduceToLike(narrowed, op.inputs[0]) : Sym(), Sym()};
}

Syms ReduceToLikeRule(const ForwardOp& op) {
  return {op.Wants(0) ? BroadcastLike(op.dy, op.inputs[0]) : Sym(), Sym()};
}

Syms ReshapeLikeRule(const ForwardOp& op) {
  return {op.Wants(0) ? ReshapeLike(op.dy, op.inputs[0]) : Sym(), Sym()};
}

Syms GatherGradRule(const ForwardOp& op) {
  return {op.Wants(0) ? Gather(op.dy, op.inputs[1], op.attrs.Int("axis")) : Sym(), Sym(), Sym()};
}

// Axes of size 1 come or go; the elements stay.
Syms SameElementsRule(const ForwardOp& op) { return {ReshapeLike(op.dy, op.inputs[0])}; }

Syms TileRule(const ForwardOp& op) {
  return {TileGrad(op.dy, op.inputs[0], IntsOf(op, "multiples"))};
}
Syms TileGradRule(const ForwardOp& op) {
  return {op.Wants(0) ? Tile(op.dy, IntsOf(op, "multiples")) : Sym(), Sym()};
}
Syms PadRule(const ForwardOp& op) { return {Unpad(op.dy, op.inputs[0], IntsOf(op, "before"))}; }
Syms UnpadRule(const ForwardOp& op) {
  return {op.Wants(0) ? SliceGrad(op.dy, op.inputs[0], IntsOf(op, "before")) : Sym(), Sym()};
}

Syms PadSequencesRule(const ForwardOp& op) {
  return {PadSequencesGrad(op.dy, op.inputs[1], op.inputs[0], op.attrs.Int("length"),
                           op.attrs.Bool("keep_last")),
          Sym()};
}
Syms PadSequencesGradRule(const ForwardOp& op) {
  return {op.Wants(0) ? PadSequences(op.dy, op.inputs[1], op.attrs.Int("length"),
                                     op.attrs.Bool("keep_last"))
                      : Sym(),
          Sym(), Sym()};
}

}  // namespace

void RegisterArrayGradients(GradientTable& table) {
  table.AddRule("concat", ConcatRule);
  table.AddRule("slice", SliceRule);
  table.AddRule("reshape", ReshapeRule);
  table.AddRule("transpose", TransposeRule);
  table.AddRule("gather", GatherRule);
  table.AddRule("broadcast_like", BroadcastLikeRule);
  table.AddRule("reduce_to_like", ReduceToLikeRule);
  table.AddRule("reshape_like", ReshapeLikeRule);
  table.AddRule("gather_grad", GatherGradRule);
  table.AddRule("expand_dims", SameElementsRule);
  table.AddRule("squeeze", SameElementsRule);
  table.AddRule("tile", TileRule);
  table.AddRule("tile_grad", TileGradRule);
  table.AddRule("pad", PadRule);
  table.AddRule("unpad", UnpadRule);
  table.AddRule("pad_sequences", PadSequencesRule);
  table.AddRule("pad_sequences_grad", PadSequencesGradRule);
}

}  // namespace mu
