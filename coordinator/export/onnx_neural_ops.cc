// Softmax, normalisation, interactions, images.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

using Names = std::vector<std::string>;

// Over the last axis.
std::string LogSoftmax(OnnxOp& o) {
  return o.graph.Add("LogSoftmax", {o.inputs[0]}, OnnxAttrs().Int("axis", -1));
}
std::string SumLast(OnnxOp& o, const std::string& value) {
  return o.graph.Add("ReduceSum", {value, o.graph.Ints({-1})}, OnnxAttrs().Int("keepdims", 0));
}

OnnxOutputs SoftmaxOf(OnnxOp& o) {
  return Names{o.graph.Add("Softmax", o.inputs, OnnxAttrs().Int("axis", -1))};
}
OnnxOutputs LogSoftmaxOf(OnnxOp& o) { return Names{LogSoftmax(o)}; }
OnnxOutputs LogSumExp(OnnxOp& o) {
  return Names{
      o.graph.Add("ReduceLogSumExp", o.inputs, OnnxAttrs().Ints("axes", {-1}).Int("keepdims", 0))};
}

// A class whose label is 0 counts for nothing, even where its logarithm is infinite.
OnnxOutputs SoftmaxCrossEntropy(OnnxOp& o) {
  const std::string product = o.graph.Add("Mul", {o.inputs[1], LogSoftmax(o)});
  const std::string none = o.graph.Add("Equal", {o.inputs[1], o.graph.Scalar(0.0f)});
  const std::string counted = o.graph.Add("Where", {none, o.graph.Scalar(0.0f), product});
  return Names{o.graph.Add("Neg", {SumLast(o, counted)})};
}
OnnxOutputs SparseSoftmaxCrossEntropy(OnnxOp& o) {
  const std::string labels = o.graph.Unsqueeze(o.inputs[1], {-1});
  const std::string logs =
      o.graph.Add("GatherElements", {LogSoftmax(o), labels}, OnnxAttrs().Int("axis", -1));
  return Names{o.graph.Add("Neg", {o.graph.Add("Squeeze", {logs, o.graph.Ints({-1})})})};
}

OnnxOutputs LayerNorm(OnnxOp& o) {
  return Names{o.graph.Add("LayerNormalization", o.inputs,
                           OnnxAttrs().Int("axis", -1).Float("epsilon", o.attrs.Float("epsilon")))};
}
OnnxOutputs RmsNorm(OnnxOp& o) {
  const std::string square = o.graph.Add("Mul", {o.inputs[0], o.inputs[0]});
  const std::string mean =
      o.graph.Add("ReduceMean", {square}, OnnxAttrs().Ints("axes", {-1}).Int("keepdims", 1));
  const std::string root =
      o.graph.Add("Sqrt", {o.graph.Add("Add", {mean, o.graph.Scalar(o.attrs.Float("epsilon"))})});
  return Names{o.graph.Add("Mul", {o.graph.Add("Div", {o.inputs[0], root}), o.inputs[1]})};
}

// All products, of which those below the diagonal are taken.
OnnxOutputs PairwiseInteractions(OnnxOp& o) {
  const int64_t n = o.in[0].shape[1];
  if (n == kUnknownDim) return absl::InvalidArgumentError("the number of vectors must be known");
  const std::string turned =
      o.graph.Add("Transpose", {o.inputs[0]}, OnnxAttrs().Ints("perm", {0, 2, 1}));
  const std::string products = o.graph.Add("MatMul", {o.inputs[0], turned});
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) pairs.push_back(i * n + j);
  }
  const std::string batch = o.graph.SliceVector(o.graph.ShapeOf(o.inputs[0]), 0, 1);
  const std::string shape =
      o.graph.Add("Concat", {batch, o.graph.Ints({n * n})}, OnnxAttrs().Int("axis", 0));
  const std::string flat =
      o.graph.Add("Reshape", {products, shape}, OnnxAttrs().Int("allowzero", 1));
  return Names{o.graph.Add("Gather", {flat, o.graph.Ints(pairs)}, OnnxAttrs().Int("axis", 1))};
}

// ONNX has channels before places.
std::string ChannelsFirst(OnnxOp& o) {
  return o.graph.Add("Transpose", {o.inputs[0]}, OnnxAttrs().Ints("perm", {0, 3, 1, 2}));
}
std::string ChannelsLast(OnnxOp& o, const std::string& value) {
  return o.graph.Add("Transpose", {value}, OnnxAttrs().Ints("perm", {0, 2, 3, 1}));
}
OnnxAttrs WindowAttrs(OnnxOp& o) {
  return OnnxAttrs()
      .Ints("strides", o.attrs.Ints("strides"))
      .String("auto_pad", o.attrs.String("padding") == "same" ? "SAME_UPPER" : "VALID");
}

OnnxOutputs Conv2d(OnnxOp& o) {
  const std::string filter =
      o.graph.Add("Transpose", {o.inputs[1]}, OnnxAttrs().Ints("perm", {3, 2, 0, 1}));
  OnnxAttrs attrs = WindowAttrs(o);
  if (o.in[1].shape[0] >= 0 && o.in[1].shape[1] >= 0)
    attrs.Ints("kernel_shape", {o.in[1].shape[0], o.in[1].shape[1]});
  return Names{ChannelsLast(o, o.graph.Add("Conv", {ChannelsFirst(o), filter}, attrs))};
}

EmitOnnx Pool(const char* onnx) {
  return [onnx](OnnxOp& o) -> OnnxOutputs {
    OnnxAttrs attrs = WindowAttrs(o);
    attrs.Ints("kernel_shape", o.attrs.Ints("size"));
    return Names{ChannelsLast(o, o.graph.Add(onnx, {ChannelsFirst(o)}, attrs))};
  };
}

}  // namespace

void AddOnnxNeuralRules(OnnxRules* rules) {
  rules->Add("softmax", SoftmaxOf);
  rules->Add("log_softmax", LogSoftmaxOf);
  rules->Add("logsumexp", LogSumExp);
  rules->Add("softmax_cross_entropy", SoftmaxCrossEntropy);
  rules->Add("sparse_softmax_cross_entropy", SparseSoftmaxCrossEntropy);
  rules->Add("layer_norm", LayerNorm);
  rules->Add("rms_norm", RmsNorm);
  rules->Add("pairwise_interactions", PairwiseInteractions);
  rules->Add("conv2d", Conv2d);
  rules->Add("max_pool2d", Pool("MaxPool"));
  rules->Add("avg_pool2d", Pool("AveragePool"));
  for (const char* op : {"sparse_softmax_cross_entropy_grad", "layer_norm_grad", "rms_norm_grad",
                         "pairwise_interactions_grad", "conv2d_input_grad", "conv2d_filter_grad",
                         "max_pool2d_grad", "avg_pool2d_grad"})
    rules->AddNone(op, kOfGradients);
}

}  // namespace mu
