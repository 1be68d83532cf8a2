#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

// The last two axes of a and b as matrices: [m, k] and [k, n] after the transposes.
absl::StatusOr<Shape> MatrixProduct(const Shape& a, const Shape& b, const AttrReader& attrs) {
  const bool ta = attrs.Bool("transpose_a");
  const bool tb = attrs.Bool("transpose_b");
  const int64_t rows_a = a[a.rank() - 2], columns_a = a[a.rank() - 1];
  const int64_t rows_b = b[b.rank() - 2], columns_b = b[b.rank() - 1];
  const int64_t inner_a = ta ? rows_a : columns_a;
  const int64_t inner_b = tb ? columns_b : rows_b;
  if (!MergeDims(inner_a, inner_b).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "inner sizes differ: ", a.ToString(), ta ? " (transposed)" : "", " times ", b.ToString(),
        tb ? " (transposed)" : "", " has ", inner_a, " against ", inner_b));
  }
  return Shape({ta ? columns_a : rows_a, tb ? rows_b : columns_b});
}

// The axes before those of a matrix.
Shape WithoutMatrix(const Shape& shape) { return Shape(shape.dims().subspan(0, shape.rank() - 2)); }

SpecsOr InferMatmul(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "a"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "b"));
  MU_RETURN_IF_ERROR(CheckRank(in[0], 2, "a"));
  MU_RETURN_IF_ERROR(CheckRank(in[1], 2, "b"));
  MU_ASSIGN_OR_RETURN(Shape shape, MatrixProduct(in[0].shape, in[1].shape, attrs));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

SpecsOr InferBatchMatmul(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "a"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "b"));
  for (const TensorSpec& spec : in) {
    if (spec.shape.rank() < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("a matrix must have at least 2 axes, got ", spec.ToString()));
    }
  }
  const absl::StatusOr<Shape> leading =
      BroadcastShapes(WithoutMatrix(in[0].shape), WithoutMatrix(in[1].shape));
  if (!leading.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the leading axes do not number the same matrices: a is ", in[0].ToString(),
                     ", b is ", in[1].ToString()));
  }
  MU_ASSIGN_OR_RETURN(Shape matrix, MatrixProduct(in[0].shape, in[1].shape, attrs));
  Shape shape = *leading;
  for (const int64_t dim : matrix) shape.Append(dim);
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

SpecsOr Reduce(const TensorSpec& in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const Shape shape, ReducedShape(in.shape, attrs));
  return std::vector<TensorSpec>{{in.dtype, shape}};
}

SpecsOr InferReduceSum(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  return Reduce(in[0], attrs);
}

SpecsOr InferReduceMean(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  return Reduce(in[0], attrs);
}

SpecsOr InferMeanSquaredError(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "predictions"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "targets"));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, in[1].shape).status());
  return std::vector<TensorSpec>{{kFloat32, Shape()}};
}

SpecsOr InferCount(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(ResolveAxes(attrs.Ints("axes"), in[0].shape.rank()).status());
  return std::vector<TensorSpec>{{kFloat32, Shape()}};
}

}  // namespace

void RegisterMathOps(OpTable& table) {
  const std::vector<AttrDef> transposes = {OptionalBool("transpose_a", false),
                                           OptionalBool("transpose_b", false)};
  const std::vector<AttrDef> reduction = {OptionalInts("axes"), OptionalBool("keep_dims", false)};
  table.BeginSection("Products and sums",
                     "Axes are >= 0 and distinct; an empty list means all of them.");
  table.Add(MakeOp("matmul", 2, 2, InferMatmul, transposes),
            "(a: float32[m, k], b: float32[k, n]) -> float32[m, n]",
            "The matrix product; a or b is transposed first where its attribute says so.");
  table.Add(MakeOp("batch_matmul", 2, 2, InferBatchMatmul, transposes),
            "(a: float32[..., m, k], b: float32[..., k, n]) -> float32[..., m, n]",
            "A matrix product, as matmul, for each of the matrices that the leading axes number; "
            "those of a and b are broadcast.");
  const char* const reduced = "(x: numeric) -> x's type, without axes";
  table.Add(MakeOp("reduce_sum", 1, 1, InferReduceSum, reduction), reduced,
            "The sum along axes; keep_dims keeps them with size 1.");
  table.Add(MakeOp("reduce_mean", 1, 1, InferReduceMean, reduction),
            "(x: float32) -> float32, without axes", "The mean along axes; of no elements: 0.");
  table.Add(MakeOp("mean_squared_error", 2, 2, InferMeanSquaredError, {}),
            "(predictions, targets: float32, one shape) -> float32[]",
            "The mean of the squared differences; of no elements: 0.");
  table.Add(
      MakeOp("count", 1, 1, InferCount, {OptionalInts("axes"), OptionalBool("at_least_one", true)}),
      "(x: any) -> float32[]",
      "The product of x's sizes along axes; with at_least_one at least 1. Only "
      "coordinator/passes make one without.");
}

}  // namespace mu
