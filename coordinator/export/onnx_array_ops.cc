// Constants, moving data, and what gradients are made of.
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

using Names = std::vector<std::string>;

OnnxOutputs Constant(OnnxOp& o) {
  MU_ASSIGN_OR_RETURN(const Tensor value, Tensor::FromProto(o.attrs.TensorValue("value")));
  return Names{o.graph.Constant(value)};
}

OnnxOutputs Concat(OnnxOp& o) {
  return Names{o.graph.Add("Concat", o.inputs, OnnxAttrs().Int("axis", o.attrs.Int("axis")))};
}

// Of the axes that are cut only.
OnnxOutputs Slice(OnnxOp& o) {
  std::vector<int64_t> begins, ends, axes;
  for (int axis = 0; axis < o.in[0].shape.rank(); ++axis) {
    const int64_t begin = o.attrs.Ints("begin")[static_cast<size_t>(axis)];
    const int64_t size = o.attrs.Ints("size")[static_cast<size_t>(axis)];
    if (begin == 0 && (size < 0 || size == o.in[0].shape[axis])) continue;
    begins.push_back(begin);
    ends.push_back(size < 0 ? std::numeric_limits<int64_t>::max() : begin + size);
    axes.push_back(axis);
  }
  if (axes.empty()) return Names{o.inputs[0]};
  return Names{o.graph.Add(
      "Slice", {o.inputs[0], o.graph.Ints(begins), o.graph.Ints(ends), o.graph.Ints(axes)})};
}

// A size of 0 means 0, not the input's.
std::string ReshapeTo(OnnxOp& o, const std::string& shape) {
  return o.graph.Add("Reshape", {o.inputs[0], shape}, OnnxAttrs().Int("allowzero", 1));
}

OnnxOutputs Reshape(OnnxOp& o) {
  const Shape shape = o.attrs.GetShape("shape");
  int64_t rest = 1;
  for (const int64_t size : shape) rest *= size == kUnknownDim ? 1 : size;
  // With allowzero, -1 stands beside no 0.
  if (rest != 0 || shape.IsFullyKnown()) return Names{ReshapeTo(o, o.graph.Ints(shape.dims()))};
  return absl::InvalidArgumentError(
      absl::StrCat("ONNX cannot find the size that is left out of ", shape.ToString()));
}

OnnxOutputs Transpose(OnnxOp& o) {
  return Names{o.graph.Add("Transpose", o.inputs, OnnxAttrs().Ints("perm", o.attrs.Ints("perm")))};
}

OnnxOutputs Gather(OnnxOp& o) {
  return Names{o.graph.Add("Gather", o.inputs, OnnxAttrs().Int("axis", o.attrs.Int("axis")))};
}

EmitOnnx FillLike(int64_t value) {
  return [value](OnnxOp& o) -> OnnxOutputs {
    return Names{o.graph.Fill(o.graph.ShapeOf(o.inputs[0]), o.in[0].dtype, value)};
  };
}

OnnxOutputs ExpandDims(OnnxOp& o) {
  return Names{o.graph.Unsqueeze(o.inputs[0], o.attrs.Ints("axes"))};
}
OnnxOutputs Squeeze(OnnxOp& o) {
  return Names{o.graph.Add("Squeeze", {o.inputs[0], o.graph.Ints(o.attrs.Ints("axes"))})};
}
OnnxOutputs Tile(OnnxOp& o) {
  return Names{o.graph.Add("Tile", {o.inputs[0], o.graph.Ints(o.attrs.Ints("multiples"))})};
}

OnnxOutputs Pad(OnnxOp& o) {
  std::vector<int64_t> pads(o.attrs.Ints("before").begin(), o.attrs.Ints("before").end());
  pads.insert(pads.end(), o.attrs.Ints("after").begin(), o.attrs.Ints("after").end());
  const float value = o.attrs.Float("value");
  const std::string padding = o.in[0].dtype == kFloat32
                                  ? o.graph.Scalar(value)
                                  : o.graph.Scalar(o.in[0].dtype, static_cast<int64_t>(value));
  return Names{o.graph.Add("Pad", {o.inputs[0], o.graph.Ints(pads), padding})};
}

// Places in `values` by [sequence, position]; where a sequence has no value, that of a row of zeros
// behind the last one.
OnnxOutputs PadSequences(OnnxOp& o) {
  OnnxGraph& graph = o.graph;
  const int64_t length = o.attrs.Int("length");
  const std::string splits = graph.Cast(o.inputs[1], kInt64);
  const std::string ends = graph.SliceVector(splits, 1, std::numeric_limits<int64_t>::max());
  std::string begins = graph.SliceVector(splits, 0, -1);
  if (o.attrs.Bool("keep_last")) {
    const std::string last = graph.Add("Sub", {ends, graph.Ints({length})});
    begins = graph.Add("Max", {begins, last});
  }
  std::vector<int64_t> positions(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) positions[static_cast<size_t>(i)] = i;
  const std::string places =
      graph.Add("Add", {graph.Unsqueeze(begins, {1}), graph.Ints(positions)});
  const std::string there = graph.Add("Less", {places, graph.Unsqueeze(ends, {1})});
  const std::string count = graph.SliceVector(graph.ShapeOf(o.inputs[0]), 0, 1);
  std::vector<int64_t> pads(2 * static_cast<size_t>(o.in[0].shape.rank()));
  pads[pads.size() / 2] = 1;
  // Bools are padded as bytes.
  const bool is_bool = o.in[0].dtype == kBool;
  const std::string values = is_bool ? graph.Cast(o.inputs[0], kUInt8) : o.inputs[0];
  const std::string zero = graph.Scalar(is_bool ? kUInt8 : o.in[0].dtype, 0);
  const std::string padded = graph.Add("Pad", {values, graph.Ints(pads), zero});
  const std::string result = graph.Add(
      "Gather", {padded, graph.Add("Where", {there, places, count})}, OnnxAttrs().Int("axis", 0));
  return Names{is_bool ? graph.Cast(result, kBool) : result};
}

OnnxOutputs BroadcastLike(OnnxOp& o) {
  std::string value = o.inputs[0];
  if (!o.attrs.Ints("axes").empty()) value = o.graph.Unsqueeze(value, o.attrs.Ints("axes"));
  return Names{o.graph.Add("Expand", {value, o.graph.ShapeOf(o.inputs[1])})};
}

OnnxOutputs ReshapeLike(OnnxOp& o) { return Names{ReshapeTo(o, o.graph.ShapeOf(o.inputs[1]))}; }

}  // namespace

void AddOnnxArrayRules(OnnxRules* rules) {
  rules->Add("constant", Constant);
  rules->AddNone("arg", "a prediction has no arguments");
  rules->AddNone("worker_index", "there is no worker");
  rules->AddNone("batch_column", "columns are the graph's inputs");  // OnnxOf takes them

  rules->AddNone("dropout", "only functions that train have it");
  rules->AddNone("random_uniform",
                 "its numbers depend on the step, which a prediction has none of");

  rules->Add("concat", Concat);
  rules->Add("slice", Slice);
  rules->Add("reshape", Reshape);
  rules->Add("transpose", Transpose);
  rules->Add("gather", Gather);
  rules->Add("zeros_like", FillLike(0));
  rules->Add("ones_like", FillLike(1));

  rules->Add("expand_dims", ExpandDims);
  rules->Add("squeeze", Squeeze);
  rules->Add("tile", Tile);
  rules->Add("pad", Pad);
  rules->AddSame("stop_gradient", "Identity");
  rules->Add("pad_sequences", PadSequences);

  rules->Add("broadcast_like", BroadcastLike);
  rules->Add("reshape_like", ReshapeLike);
  for (const char* op : {"relu_grad", "reduce_to_like", "slice_grad", "concat_piece", "gather_grad",
                         "tile_grad", "unpad", "pad_sequences_grad"})
    rules->AddNone(op, kOfGradients);
}

}  // namespace mu
