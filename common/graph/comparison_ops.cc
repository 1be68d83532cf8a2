#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr Compare(Inputs in) {
  MU_RETURN_IF_ERROR(CheckSameType(in));
  MU_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{kBool, shape}};
}

SpecsOr InferOrder(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckNumeric(in[1], "input 1"));
  return Compare(in);
}

SpecsOr InferEqual(Inputs in, const AttrReader&) { return Compare(in); }

SpecsOr InferLogical(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckType(in[0], {kBool}, "input 0"));
  MU_RETURN_IF_ERROR(CheckType(in[1], {kBool}, "input 1"));
  return Compare(in);
}

SpecsOr InferNot(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckType(in[0], {kBool}, "input 0"));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferWhere(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckType(in[0], {kBool}, "condition"));
  MU_RETURN_IF_ERROR(CheckSameType(in.subspan(1)));
  MU_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(in[1].shape, in[2].shape));
  MU_ASSIGN_OR_RETURN(shape, BroadcastShapes(in[0].shape, shape));
  return std::vector<TensorSpec>{{in[1].dtype, shape}};
}

}  // namespace

void RegisterComparisonOps(OpTable& table) {
  table.BeginSection("Comparisons and choices",
                     "Inputs are broadcast as those of elementwise ops. A comparison with NaN is "
                     "false, but for not_equal.");
  const auto order = [&table](const char* name, const char* doc) {
    table.Add(MakeOp(name, 2, 2, InferOrder), "(a, b: numeric) -> bool, broadcast", doc);
  };
  order("greater", "a > b.");
  order("greater_equal", "a >= b.");
  order("less", "a < b.");
  order("less_equal", "a <= b.");
  table.Add(MakeOp("equal", 2, 2, InferEqual), "(a, b: any) -> bool, broadcast", "a == b.");
  table.Add(MakeOp("not_equal", 2, 2, InferEqual), "(a, b: any) -> bool, broadcast", "a != b.");
  table.Add(MakeOp("logical_and", 2, 2, InferLogical), "(a, b: bool) -> bool, broadcast",
            "Both are true.");
  table.Add(MakeOp("logical_or", 2, 2, InferLogical), "(a, b: bool) -> bool, broadcast",
            "One of them is true, or both.");
  table.Add(MakeOp("logical_not", 1, 1, InferNot), "(x: bool) -> x's shape", "x is false.");
  table.Add(MakeOp("where", 3, 3, InferWhere),
            "(condition: bool, a, b: any, one type) -> their type, broadcast",
            "a where the condition is true, else b.");
}

}  // namespace mu
