// Elementwise ops, comparisons and choices, arithmetic of ids.
#include "common/base/status.h"
#include "coordinator/export/onnx_ops.h"

namespace mu {
namespace {

using Names = std::vector<std::string>;

OnnxOutputs Square(OnnxOp& o) { return Names{o.graph.Add("Mul", {o.inputs[0], o.inputs[0]})}; }

// With u = 1 + x rounded: log(u) * x / (u - 1), as Kahan writes it; x where u is 1, and log(u)
// where nothing was rounded, which is so for infinity as well.
OnnxOutputs Log1p(OnnxOp& o) {
  const std::string& x = o.inputs[0];
  const std::string one = o.graph.Scalar(1.0f);
  const std::string u = o.graph.Add("Add", {x, one});
  const std::string log = o.graph.Add("Log", {u});
  const std::string rounded = o.graph.Add("Sub", {u, one});
  const std::string scaled = o.graph.Add("Mul", {log, o.graph.Add("Div", {x, rounded})});
  const std::string exact = o.graph.Add("Where", {o.graph.Add("Equal", {rounded, x}), log, scaled});
  return Names{o.graph.Add("Where", {o.graph.Add("Equal", {u, one}), x, exact})};
}

// ONNX says nothing of floats that the integers do not have.
OnnxOutputs Cast(OnnxOp& o) {
  const DType to = o.attrs.Type("dtype");
  if (o.in[0].dtype != kFloat32 || to == kFloat32 || to == kBool)
    return Names{o.graph.Cast(o.inputs[0], to)};
  const std::string finite = o.graph.Add(
      "Where", {o.graph.Add("IsNaN", {o.inputs[0]}), o.graph.Scalar(0.0f), o.inputs[0]});
  // The largest floats below 2^31 and 2^63.
  const float least = to == kUInt8 ? 0.0f : to == kInt32 ? -2147483648.0f : -9223372036854775808.0f;
  const float most = to == kUInt8 ? 255.0f : to == kInt32 ? 2147483520.0f : 9223371487098961920.0f;
  return Names{
      o.graph.Cast(o.graph.Add("Clip", {finite, o.graph.Scalar(least), o.graph.Scalar(most)}), to)};
}

// max(x, 0) - x * z + log1p(exp(-|x|)): the first and the last are softplus.
OnnxOutputs SigmoidCrossEntropy(OnnxOp& o) {
  const std::string softplus = o.graph.Add("Softplus", {o.inputs[0]});
  return Names{o.graph.Add("Sub", {softplus, o.graph.Add("Mul", o.inputs)})};
}

// ONNX Runtime compares no bytes and chooses between no bools: by way of another type.
OnnxOutputs Equal(OnnxOp& o) {
  Names inputs = o.inputs;
  if (o.in[0].dtype == kUInt8) {
    for (std::string& input : inputs) input = o.graph.Cast(input, kInt32);
  }
  return Names{o.graph.Add("Equal", inputs)};
}
OnnxOutputs NotEqual(OnnxOp& o) {
  MU_ASSIGN_OR_RETURN(const Names equal, Equal(o));
  return Names{o.graph.Add("Not", equal)};
}
OnnxOutputs Where(OnnxOp& o) {
  if (o.in[1].dtype != kBool) return Names{o.graph.Add("Where", o.inputs)};
  const std::string chosen = o.graph.Add(
      "Where", {o.inputs[0], o.graph.Cast(o.inputs[1], kUInt8), o.graph.Cast(o.inputs[2], kUInt8)});
  return Names{o.graph.Cast(chosen, kBool)};
}

// Rounds down, as the remainder has the divisor's sign: then the division leaves none.
OnnxOutputs FloorDivide(OnnxOp& o) {
  const std::string whole = o.graph.Add("Sub", {o.inputs[0], o.graph.Add("Mod", o.inputs)});
  return Names{o.graph.Add("Div", {whole, o.inputs[1]})};
}

}  // namespace

void AddOnnxElementwiseRules(OnnxRules* rules) {
  rules->AddSame("add", "Add");
  rules->AddSame("subtract", "Sub");
  rules->AddSame("multiply", "Mul");
  rules->AddSame("divide", "Div");
  rules->AddSame("pow", "Pow");
  rules->AddSame("maximum", "Max");
  rules->AddSame("minimum", "Min");
  rules->AddSame("negate", "Neg");
  rules->AddSame("abs", "Abs");
  rules->AddSame("sign", "Sign");
  rules->AddSame("relu", "Relu");
  rules->AddSame("sigmoid", "Sigmoid");
  rules->AddSame("tanh", "Tanh");
  rules->AddSame("log", "Log");
  rules->AddSame("exp", "Exp");
  rules->Add("log1p", Log1p);
  rules->AddSame("sqrt", "Sqrt");
  rules->AddSame("erf", "Erf");
  rules->AddSame("sin", "Sin");
  rules->AddSame("cos", "Cos");
  rules->AddSame("floor", "Floor");
  rules->AddSame("ceil", "Ceil");
  rules->AddSame("round", "Round");
  rules->Add("square", Square);
  rules->Add("cast", Cast);
  rules->Add("sigmoid_cross_entropy", SigmoidCrossEntropy);

  rules->AddSame("greater", "Greater");
  rules->AddSame("greater_equal", "GreaterOrEqual");
  rules->AddSame("less", "Less");
  rules->AddSame("less_equal", "LessOrEqual");
  rules->Add("equal", Equal);
  rules->Add("not_equal", NotEqual);
  rules->AddSame("logical_and", "And");
  rules->AddSame("logical_or", "Or");
  rules->AddSame("logical_not", "Not");
  rules->Add("where", Where);

  rules->Add("floor_divide", FloorDivide);
  rules->AddSame("modulo", "Mod");
  rules->AddNone("hash_bucket",
                 "this opset has no exclusive or of integers; hash the ids before the graph");
}

}  // namespace mu
