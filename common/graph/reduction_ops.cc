#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferNumeric(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  MU_ASSIGN_OR_RETURN(const Shape shape, ReducedShape(in[0].shape, attrs));
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferBool(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckType(in[0], {kBool}, "input 0"));
  MU_ASSIGN_OR_RETURN(const Shape shape, ReducedShape(in[0].shape, attrs));
  return std::vector<TensorSpec>{{kBool, shape}};
}

SpecsOr InferArgmax(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  const int64_t axis = attrs.Int("axis");
  MU_RETURN_IF_ERROR(CheckAxis(axis, in[0].shape.rank()));
  if (in[0].shape[static_cast<int>(axis)] == 0)
    return absl::InvalidArgumentError("there is no largest of no elements");
  Shape shape;
  for (int i = 0; i < in[0].shape.rank(); ++i) {
    if (i != axis) shape.Append(in[0].shape[i]);
  }
  return std::vector<TensorSpec>{{kInt64, shape}};
}

SpecsOr InferCumsum(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckAxis(attrs.Int("axis"), in[0].shape.rank()));
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferProductsOfOthers(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  MU_RETURN_IF_ERROR(ResolveAxes(attrs.Ints("axes"), in[0].shape.rank()).status());
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferSumOfSquares(Inputs in, const AttrReader&) {
  for (const TensorSpec& input : in) MU_RETURN_IF_ERROR(CheckFloat(input, "an input"));
  return std::vector<TensorSpec>{{kFloat32, Shape()}};
}

}  // namespace

void RegisterReductionOps(OpTable& table) {
  const std::vector<AttrDef> reduction = {OptionalInts("axes"), OptionalBool("keep_dims", false)};
  const char* const numeric = "(x: numeric) -> x's type, without axes";
  const char* const logical = "(x: bool) -> bool, without axes";
  table.BeginSection("Other reductions and scans",
                     "Axes are >= 0 and distinct; an empty list means all of them. keep_dims keeps "
                     "them with size 1.");
  table.Add(MakeOp("reduce_max", 1, 1, InferNumeric, reduction), numeric,
            "The largest along axes; NaN if one is NaN; of no elements: the type's smallest value "
            "(-infinity). Several that are the largest share the gradient equally.");
  table.Add(MakeOp("reduce_min", 1, 1, InferNumeric, reduction), numeric,
            "The smallest along axes; NaN if one is NaN; of no elements: the type's largest value "
            "(infinity). Several that are the smallest share the gradient equally.");
  table.Add(MakeOp("reduce_prod", 1, 1, InferNumeric, reduction), numeric,
            "The product along axes; of no elements: 1.");
  table.Add(MakeOp("reduce_any", 1, 1, InferBool, reduction), logical,
            "Whether one is true; of no elements: false.");
  table.Add(MakeOp("reduce_all", 1, 1, InferBool, reduction), logical,
            "Whether all are true; of no elements: true.");
  table.Add(MakeOp("argmax", 1, 1, InferArgmax, {Required("axis", AttrKind::kInt)}),
            "(x: numeric) -> int64, without axis",
            "Where along axis the largest is: the first of several. NaN counts as the largest. "
            "INVALID_ARGUMENT if there is no element.");
  table.Add(MakeOp("cumsum", 1, 1, InferCumsum,
                   {Required("axis", AttrKind::kInt), OptionalBool("exclusive", false),
                    OptionalBool("reverse", false)}),
            "(x: numeric) -> x's type and shape",
            "The sum of the elements up to this one along axis; exclusive: without this one; "
            "reverse: from the end.");
  table.Add(MakeOp("products_of_others", 1, 1, InferProductsOfOthers, {OptionalInts("axes")}),
            "(x: float32) -> x's shape",
            "For each element the product of all others along axes: what reduce_prod's gradient is "
            "made of.");
  table.Add(MakeOp("sum_of_squares", 1, OpDef::kAnyNumber, InferSumOfSquares,
                   {OptionalBool("root", false)}),
            "(x0, x1, ...: float32) -> float32[]",
            "The sum of the squares of all elements; root: its square root, finite also where the "
            "sum is too large for float32. Only coordinator/passes ask for the root.");
}

}  // namespace mu
