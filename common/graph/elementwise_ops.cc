#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr Broadcast(Inputs in, DType result) {
  MU_RETURN_IF_ERROR(CheckSameType(in));
  MU_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{result, shape}};
}

SpecsOr InferArithmetic(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckNumeric(in[1], "input 1"));
  return Broadcast(in, in[0].dtype);
}

SpecsOr InferFloatBinary(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "input 1"));
  return Broadcast(in, kFloat32);
}

SpecsOr InferNumericUnary(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferFloatUnary(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferCast(Inputs in, const AttrReader& attrs) {
  return std::vector<TensorSpec>{{attrs.Type("dtype"), in[0].shape}};
}

SpecsOr InferSigmoidCrossEntropy(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "logits"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "labels"));
  MU_ASSIGN_OR_RETURN(Shape shape, MergeShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

}  // namespace

void RegisterElementwiseOps(OpTable& table) {
  table.BeginSection("Elementwise",
                     "Two inputs have one type and are broadcast as numpy does: aligned at the "
                     "last axis, sizes of "
                     "1 are repeated. Arithmetic of integers wraps around.");
  const auto binary = [&table](const char* name, const char* doc) {
    table.Add(MakeOp(name, 2, 2, InferArithmetic), "(a, b: numeric) -> their type, broadcast", doc);
  };
  binary("add", "a + b.");
  binary("subtract", "a - b.");
  binary("multiply", "a * b.");
  binary("maximum", "The larger of both; NaN if one is NaN.");
  binary("minimum", "The smaller of both; NaN if one is NaN.");
  table.Add(MakeOp("divide", 2, 2, InferFloatBinary), "(a, b: float32) -> float32, broadcast",
            "a / b.");
  table.Add(MakeOp("pow", 2, 2, InferFloatBinary), "(a, b: float32) -> float32, broadcast",
            "a to the power of b. b gets no gradient where a <= 0.");
  const auto numeric = [&table](const char* name, const char* doc) {
    table.Add(MakeOp(name, 1, 1, InferNumericUnary), "(x: numeric) -> x's type and shape", doc);
  };
  numeric("negate", "-x.");
  numeric("abs", "The absolute value.");
  numeric("sign", "1, 0 or -1; NaN stays NaN.");
  const auto unary = [&table](const char* name, const char* doc) {
    table.Add(MakeOp(name, 1, 1, InferFloatUnary), "(x: float32) -> x's shape", doc);
  };
  unary("relu", "max(x, 0); NaN stays NaN.");
  unary("sigmoid", "1 / (1 + exp(-x)).");
  unary("tanh", "The hyperbolic tangent.");
  unary("erf", "The error function.");
  unary("log", "The natural logarithm.");
  unary("log1p", "log(1 + x), exact also where x is near 0.");
  unary("exp", "The exponential function.");
  unary("sqrt", "The square root.");
  unary("square", "x * x.");
  unary("sin", "The sine.");
  unary("cos", "The cosine.");
  unary("floor", "The largest integer that is not above x.");
  unary("ceil", "The smallest integer that is not below x.");
  unary("round", "The nearest integer; of two, the even one.");
  table.Add(MakeOp("cast", 1, 1, InferCast, {Required("dtype", AttrKind::kDType)}),
            "(x: any) -> dtype, x's shape",
            "x as another type. Float to integer: towards zero, saturating, NaN is 0. Integer to "
            "integer: wraps. To bool: x != 0.");
  table.Add(MakeOp("sigmoid_cross_entropy", 2, 2, InferSigmoidCrossEntropy),
            "(logits, labels: float32, one shape) -> their shape",
            "max(x, 0) - x * z + log1p(exp(-|x|)) for logits x and labels z; stable in both tails. "
            "Nothing is broadcast.");
}

}  // namespace mu
