// Rules of special functions, softmax, normalisation, interactions and images.
#include "coordinator/autodiff/gradient_table.h"
#include "coordinator/frontend/image_ops.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {
namespace {

using Syms = std::vector<Sym>;

// `x` [...] spread over the last axis of `like` [..., n].
Sym AlongRows(const Sym& x, const Sym& like) {
  return BroadcastLike(x, like, {like.shape().rank() - 1});
}

// d erf(x) / dx = 2 / sqrt(pi) * exp(-x * x)
Syms ErfRule(const ForwardOp& op) {
  return {op.dy * Exp(Negate(Square(op.inputs[0]))) * 1.1283791670955126f};
}

Syms SoftmaxRule(const ForwardOp& op) {
  const Sym along = ReduceSum(op.dy * op.output, {-1}, true);
  return {op.output * (op.dy - along)};
}

Syms LogSoftmaxRule(const ForwardOp& op) {
  return {op.dy - Exp(op.output) * ReduceSum(op.dy, {-1}, true)};
}

Syms LogSumExpRule(const ForwardOp& op) {
  const Sym& x = op.inputs[0];
  return {AlongRows(op.dy, x) * Softmax(x)};
}

// d/dx = sum(z) * softmax(x) - z, d/dz = -log_softmax(x)
Syms SoftmaxCrossEntropyRule(const ForwardOp& op) {
  const Sym& logits = op.inputs[0];
  const Sym& labels = op.inputs[1];
  const Sym dy = AlongRows(op.dy, logits);
  Syms gradients(2);
  if (op.Wants(0)) {
    gradients[0] = dy * (Softmax(logits) * ReduceSum(labels, {-1}, true) - labels);
  }
  if (op.Wants(1)) gradients[1] = Negate(dy * LogSoftmax(logits));
  return gradients;
}

Syms SparseSoftmaxCrossEntropyRule(const ForwardOp& op) {
  return {SparseSoftmaxCrossEntropyGrad(op.dy, op.inputs[0], op.inputs[1]), Sym()};
}

Syms LayerNormRule(const ForwardOp& op) {
  const NormGradients gradients =
      LayerNormGrad(op.dy, op.inputs[0], op.inputs[1], op.attrs.Float("epsilon"));
  return {gradients.x, gradients.gamma, gradients.beta};
}

Syms RmsNormRule(const ForwardOp& op) {
  const NormGradients gradients =
      RmsNormGrad(op.dy, op.inputs[0], op.inputs[1], op.attrs.Float("epsilon"));
  return {gradients.x, gradients.gamma};
}

Syms InteractionsRule(const ForwardOp& op) {
  return {PairwiseInteractionsGrad(op.dy, op.inputs[0])};
}

Padding PaddingOf(const ForwardOp& op) {
  return op.attrs.String("padding") == "same" ? Padding::kSame : Padding::kValid;
}

Syms Conv2dRule(const ForwardOp& op) {
  const auto strides = op.attrs.Ints("strides");
  const WindowOptions options{strides[0], strides[1], PaddingOf(op)};
  const Sym& x = op.inputs[0];
  const Sym& filter = op.inputs[1];
  return {op.Wants(0) ? Convolve2dInputGrad(op.dy, x, filter, options) : Sym(),
          op.Wants(1) ? Convolve2dFilterGrad(op.dy, x, filter, options) : Sym()};
}

PoolOptions PoolOf(const ForwardOp& op) {
  const auto size = op.attrs.Ints("size");
  const auto strides = op.attrs.Ints("strides");
  return {size[0], size[1], strides[0], strides[1], PaddingOf(op)};
}

Syms MaxPoolRule(const ForwardOp& op) { return {MaxPool2dGrad(op.dy, op.inputs[0], PoolOf(op))}; }
Syms AvgPoolRule(const ForwardOp& op) { return {AvgPool2dGrad(op.dy, op.inputs[0], PoolOf(op))}; }

}  // namespace

void RegisterNeuralGradients(GradientTable& table) {
  table.AddRule("erf", ErfRule);
  table.AddRule("softmax", SoftmaxRule);
  table.AddRule("log_softmax", LogSoftmaxRule);
  table.AddRule("logsumexp", LogSumExpRule);
  table.AddRule("softmax_cross_entropy", SoftmaxCrossEntropyRule);
  table.AddRule("sparse_softmax_cross_entropy", SparseSoftmaxCrossEntropyRule);
  table.AddRule("layer_norm", LayerNormRule);
  table.AddRule("rms_norm", RmsNormRule);
  table.AddRule("pairwise_interactions", InteractionsRule);
  table.AddRule("conv2d", Conv2dRule);
  table.AddRule("max_pool2d", MaxPoolRule);
  table.AddRule("avg_pool2d", AvgPoolRule);
  for (const char* op : {"sparse_softmax_cross_entropy_grad", "layer_norm_grad", "rms_norm_grad",
                         "pairwise_interactions_grad", "conv2d_input_grad", "conv2d_filter_grad",
                         "max_pool2d_grad", "avg_pool2d_grad"}) {
    table.AddNone(op, "it is itself a gradient, and second derivatives of it are not there");
  }
}

}  // namespace mu
