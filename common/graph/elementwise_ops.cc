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

SpecsOr InferDivide(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "input 1"));
  return Broadcast(in, kFloat32);
}

SpecsOr InferGreater(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckNumeric(in[1], "input 1"));
  return Broadcast(in, kBool);
}

SpecsOr InferEqual(Inputs in, const AttrReader&) { return Broadcast(in, kBool); }

SpecsOr InferNegate(Inputs in, const AttrReader&) {
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
  for (const char* name : {"add", "subtract", "multiply", "maximum", "minimum"}) {
    table.Add(MakeOp(name, 2, 2, InferArithmetic));
  }
  table.Add(MakeOp("divide", 2, 2, InferDivide));
  table.Add(MakeOp("greater", 2, 2, InferGreater));
  table.Add(MakeOp("equal", 2, 2, InferEqual));
  table.Add(MakeOp("negate", 1, 1, InferNegate));
  for (const char* name : {"relu", "sigmoid", "tanh", "log", "exp", "sqrt", "square"}) {
    table.Add(MakeOp(name, 1, 1, InferFloatUnary));
  }
  table.Add(MakeOp("cast", 1, 1, InferCast, {Required("dtype", AttrKind::kDType)}));
  table.Add(MakeOp("sigmoid_cross_entropy", 2, 2, InferSigmoidCrossEntropy));
}

}  // namespace mu
