// Products, sums and other reductions.
#include <utility>

#include "common/base/status.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

using Names = std::vector<std::string>;

OnnxOutputs MatMul(OnnxOp& o) {
  const bool a = o.attrs.Bool("transpose_a"), b = o.attrs.Bool("transpose_b");
  if (!a && !b) return Names{o.graph.Add("MatMul", o.inputs)};
  return Names{o.graph.Add("Gemm", o.inputs, OnnxAttrs().Int("transA", a).Int("transB", b))};
}

OnnxOutputs BatchMatMul(OnnxOp& o) {
  const auto transposed = [&](const std::string& value, const TensorSpec& spec, bool transpose) {
    if (!transpose) return value;
    std::vector<int64_t> perm;
    for (int axis = 0; axis < spec.shape.rank(); ++axis) perm.push_back(axis);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return o.graph.Add("Transpose", {value}, OnnxAttrs().Ints("perm", perm));
  };
  return Names{
      o.graph.Add("MatMul", {transposed(o.inputs[0], o.in[0], o.attrs.Bool("transpose_a")),
                             transposed(o.inputs[1], o.in[1], o.attrs.Bool("transpose_b"))})};
}

// An empty list of axes means all, as where ONNX has none.
OnnxOutputs ReduceSum(OnnxOp& o) {
  Names inputs = {o.inputs[0]};
  if (!o.attrs.Ints("axes").empty()) inputs.push_back(o.graph.Ints(o.attrs.Ints("axes")));
  return Names{
      o.graph.Add("ReduceSum", inputs, OnnxAttrs().Int("keepdims", o.attrs.Bool("keep_dims")))};
}

// float32 []: the product of the sizes along the axes (none: all), at least 1.
std::string CountOf(OnnxOp& o, absl::Span<const int64_t> axes, bool at_least_one = true) {
  std::string sizes = o.graph.ShapeOf(o.inputs[0]);
  if (!axes.empty()) sizes = o.graph.Add("Gather", {sizes, o.graph.Ints(axes)});
  const std::string count = o.graph.Add("ReduceProd", {sizes}, OnnxAttrs().Int("keepdims", 0));
  return o.graph.Cast(at_least_one ? o.graph.Add("Max", {count, o.graph.Scalar(kInt64, 1)}) : count,
                      kFloat32);
}

// The mean of no elements is 0, and no number in ONNX.
OnnxOutputs ReduceMean(OnnxOp& o) {
  MU_ASSIGN_OR_RETURN(const Names sum, ReduceSum(o));
  return Names{o.graph.Add("Div", {sum[0], CountOf(o, o.attrs.Ints("axes"))})};
}

OnnxOutputs MeanSquaredError(OnnxOp& o) {
  const std::string difference = o.graph.Add("Sub", o.inputs);
  const std::string square = o.graph.Add("Mul", {difference, difference});
  const std::string sum = o.graph.Add("ReduceSum", {square}, OnnxAttrs().Int("keepdims", 0));
  return Names{o.graph.Add("Div", {sum, CountOf(o, {})})};
}

OnnxOutputs Count(OnnxOp& o) {
  return Names{CountOf(o, o.attrs.Ints("axes"), o.attrs.Bool("at_least_one"))};
}

// Those whose axes are an attribute, in this opset. Of no elements ONNX says nothing.
EmitOnnx Reduce(const char* onnx) {
  return [onnx](OnnxOp& o) -> OnnxOutputs {
    OnnxAttrs attrs;
    attrs.Int("keepdims", o.attrs.Bool("keep_dims"));
    if (!o.attrs.Ints("axes").empty()) attrs.Ints("axes", o.attrs.Ints("axes"));
    return Names{o.graph.Add(onnx, o.inputs, attrs)};
  };
}

// Whether one of these bools is true.
std::string AnyOf(OnnxOp& o, const std::string& bools) {
  Names inputs = {o.graph.Cast(bools, kInt32)};
  if (!o.attrs.Ints("axes").empty()) inputs.push_back(o.graph.Ints(o.attrs.Ints("axes")));
  const std::string count =
      o.graph.Add("ReduceSum", inputs, OnnxAttrs().Int("keepdims", o.attrs.Bool("keep_dims")));
  return o.graph.Add("Greater", {count, o.graph.Scalar(kInt32, 0)});
}

OnnxOutputs ReduceAny(OnnxOp& o) { return Names{AnyOf(o, o.inputs[0])}; }
OnnxOutputs ReduceAll(OnnxOp& o) {
  return Names{o.graph.Add("Not", {AnyOf(o, o.graph.Add("Not", o.inputs))})};
}

OnnxOutputs ArgMax(OnnxOp& o) {
  return Names{o.graph.Add("ArgMax", o.inputs,
                           OnnxAttrs().Int("axis", o.attrs.Int("axis")).Int("keepdims", 0))};
}

OnnxOutputs CumSum(OnnxOp& o) {
  return Names{o.graph.Add("CumSum", {o.inputs[0], o.graph.Scalar(kInt64, o.attrs.Int("axis"))},
                           OnnxAttrs()
                               .Int("exclusive", o.attrs.Bool("exclusive"))
                               .Int("reverse", o.attrs.Bool("reverse")))};
}

OnnxOutputs SumOfSquares(OnnxOp& o) {
  Names sums;
  for (const std::string& input : o.inputs) {
    sums.push_back(o.graph.Add("ReduceSum", {o.graph.Add("Mul", {input, input})},
                               OnnxAttrs().Int("keepdims", 0)));
  }
  const std::string sum = o.graph.Add("Sum", sums);
  return Names{o.attrs.Bool("root") ? o.graph.Add("Sqrt", {sum}) : sum};
}

}  // namespace

void AddOnnxMathRules(OnnxRules* rules) {
  rules->Add("matmul", MatMul);
  rules->Add("batch_matmul", BatchMatMul);
  rules->Add("reduce_sum", ReduceSum);
  rules->Add("reduce_mean", ReduceMean);
  rules->Add("mean_squared_error", MeanSquaredError);
  rules->Add("count", Count);

  rules->Add("reduce_max", Reduce("ReduceMax"));
  rules->Add("reduce_min", Reduce("ReduceMin"));
  rules->Add("reduce_prod", Reduce("ReduceProd"));
  rules->Add("reduce_any", ReduceAny);
  rules->Add("reduce_all", ReduceAll);
  rules->Add("argmax", ArgMax);
  rules->Add("cumsum", CumSum);
  rules->Add("sum_of_squares", SumOfSquares);
  rules->AddNone("products_of_others", kOfGradients);
}

}  // namespace mu
