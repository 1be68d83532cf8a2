#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr NoOutputs() { return std::vector<TensorSpec>{}; }

absl::Status CheckUpdate(const TensorSpec& update, const AttrReader& attrs,
                         absl::string_view what) {
  const TensorSpec variable{attrs.Type("dtype"), attrs.GetShape("shape")};
  if (!variable.shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", attrs.String("variable"), "\" has an unknown size"));
  }
  if (update.dtype != variable.dtype || !MergeShapes(update.shape, variable.shape).ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is ", update.ToString(),
                                                   " but variable \"", attrs.String("variable"),
                                                   "\" is ", variable.ToString()));
  }
  return absl::OkStatus();
}

SpecsOr InferAssignAdd(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "delta"));
  MU_RETURN_IF_ERROR(CheckUpdate(in[0], attrs, "delta"));
  return NoOutputs();
}

SpecsOr InferAssign(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckUpdate(in[0], attrs, "the value"));
  return NoOutputs();
}

SpecsOr InferApplyGradient(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "the gradient"));
  MU_RETURN_IF_ERROR(CheckUpdate(in[0], attrs, "the gradient"));
  return NoOutputs();
}

// The variable's shape, which has rows.
absl::StatusOr<Shape> CheckRowsOfVariable(const AttrReader& attrs) {
  const Shape shape = attrs.GetShape("shape");
  if (!shape.IsFullyKnown() || shape.rank() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", attrs.String("variable"), "\" has no rows of known size"));
  }
  return shape;
}

SpecsOr InferVariableRows(Inputs, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(Shape shape, CheckRowsOfVariable(attrs));
  const int64_t first = attrs.Int("first"), count = attrs.Int("count");
  if (first < 0 || count < 0 || first > shape[0] || count > shape[0] - first) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows ", first, " to ", first, " + ", count, " are not within the ", shape[0],
                     " rows of variable \"", attrs.String("variable"), "\""));
  }
  shape[0] = count;
  return std::vector<TensorSpec>{{attrs.Type("dtype"), shape}};
}

SpecsOr CheckScatter(Inputs in, const AttrReader& attrs, absl::string_view what) {
  MU_ASSIGN_OR_RETURN(Shape shape, CheckRowsOfVariable(attrs));
  MU_RETURN_IF_ERROR(CheckType(in[0], {kInt64}, "rows"));
  MU_RETURN_IF_ERROR(CheckRank(in[0], 1, "rows"));
  shape[0] = in[0].shape[0];
  const TensorSpec wanted{attrs.Type("dtype"), shape};
  if (in[1].dtype == wanted.dtype && MergeShapes(in[1].shape, shape).ok()) return NoOutputs();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", in[1].ToString(), " but those rows of variable \"",
                   attrs.String("variable"), "\" are ", wanted.ToString()));
}

SpecsOr InferScatterAdd(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[1], "delta"));
  return CheckScatter(in, attrs, "delta");
}

SpecsOr InferScatterUpdate(Inputs in, const AttrReader& attrs) {
  return CheckScatter(in, attrs, "the value");
}

// A float32 matrix [n, k]; the batch is [records, columns] with the k (or n) columns.
absl::StatusOr<Shape> CheckProduct(const TensorSpec& batch, const AttrReader& attrs, bool back,
                                   absl::string_view what) {
  MU_ASSIGN_OR_RETURN(const Shape shape, CheckRowsOfVariable(attrs));
  if (attrs.Type("dtype") != kFloat32 || shape.rank() != 2 || shape.elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", attrs.String("variable"), "\" is ",
                     TensorSpec{attrs.Type("dtype"), shape}.ToString(),
                     "; servers multiply with float32 matrices that have elements"));
  }
  MU_RETURN_IF_ERROR(CheckFloat(batch, what));
  if (MergeShapes(batch.shape, Shape({kUnknownDim, shape[back ? 0 : 1]})).ok()) return shape;
  return absl::InvalidArgumentError(absl::StrCat(what, " is ", batch.ToString(), " but variable \"",
                                                 attrs.String("variable"), "\" is ",
                                                 shape.ToString()));
}

SpecsOr InferShardedMatmul(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const Shape shape, CheckProduct(in[0], attrs, /*back=*/false, "x"));
  return std::vector<TensorSpec>{{kFloat32, Shape({in[0].shape[0], shape[0]})}};
}

SpecsOr InferShardedMatmulBack(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const Shape shape, CheckProduct(in[0], attrs, /*back=*/true, "dy"));
  return std::vector<TensorSpec>{{kFloat32, Shape({in[0].shape[0], shape[1]})}};
}

SpecsOr InferApplyProductGradient(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckProduct(in[0], attrs, /*back=*/true, "dy").status());
  MU_RETURN_IF_ERROR(CheckProduct(in[1], attrs, /*back=*/false, "x").status());
  if (MergeShapes(Shape({in[0].shape[0]}), Shape({in[1].shape[0]})).ok()) return NoOutputs();
  return absl::InvalidArgumentError(
      absl::StrCat("dy ", in[0].ToString(), " and x ", in[1].ToString(), " have other records"));
}

absl::Status CheckTable(const AttrReader& attrs) {
  if (attrs.Int("rows") <= 0 || attrs.Int("dim") <= 0 ||
      attrs.Int("dim") > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("table \"", attrs.String("table"),
                                                   "\" cannot have ", attrs.Int("rows"),
                                                   " rows of ", attrs.Int("dim")));
  }
  return absl::OkStatus();
}

// The number of bags: values [n], splits [batch + 1] and perhaps weights [n].
absl::StatusOr<int64_t> CheckBags(const TensorSpec& values, const TensorSpec& splits,
                                  const TensorSpec* weights) {
  MU_RETURN_IF_ERROR(CheckRank(values, 1, "values"));
  MU_RETURN_IF_ERROR(CheckType(splits, {kInt32}, "splits"));
  MU_RETURN_IF_ERROR(CheckRank(splits, 1, "splits"));
  if (weights != nullptr) {
    MU_RETURN_IF_ERROR(CheckFloat(*weights, "weights"));
    if (!MergeShapes(weights->shape, values.shape).ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "weights ", weights->ToString(), " must have the shape of values ", values.ToString()));
    }
  }
  if (splits.shape[0] == 0)
    return absl::InvalidArgumentError("splits has batch + 1 entries, got 0");
  return splits.shape[0] == kUnknownDim ? kUnknownDim : splits.shape[0] - 1;
}

absl::StatusOr<bool> IsBag(const AttrReader& attrs) {
  const std::string& combiner = attrs.String("combiner");
  if (combiner == "none") return false;
  if (combiner == "sum" || combiner == "mean" || combiner == "sqrtn") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("combiner must be none, sum, mean or sqrtn, got \"", combiner, "\""));
}

// The lookup's output, from its inputs.
absl::StatusOr<Shape> LookupShape(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckTable(attrs));
  MU_ASSIGN_OR_RETURN(const bool bag, IsBag(attrs));
  MU_RETURN_IF_ERROR(CheckIndices(in[0], bag ? "values" : "ids"));
  if (!bag) {
    if (in.size() != 1) return absl::InvalidArgumentError("without a combiner takes ids only");
    Shape shape = in[0].shape;
    shape.Append(attrs.Int("dim"));
    return shape;
  }
  if (in.size() < 2 || in.size() > 3) {
    return absl::InvalidArgumentError("with a combiner takes values, splits and perhaps weights");
  }
  MU_ASSIGN_OR_RETURN(const int64_t bags,
                      CheckBags(in[0], in[1], in.size() == 3 ? &in[2] : nullptr));
  return Shape({bags, attrs.Int("dim")});
}

SpecsOr InferEmbeddingLookup(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(Shape shape, LookupShape(in, attrs));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

SpecsOr InferEmbeddingGradient(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(Shape shape, LookupShape(in.subspan(0, in.size() - 1), attrs));
  MU_RETURN_IF_ERROR(CheckFloat(in.back(), "the gradient"));
  MU_RETURN_IF_ERROR(MergeShapes(shape, in.back().shape).status());
  return NoOutputs();
}

SpecsOr InferUnique(Inputs in, const AttrReader&) {
  std::vector<TensorSpec> specs = {{kInt64, Shape({kUnknownDim})}};
  for (const TensorSpec& ids : in) {
    MU_RETURN_IF_ERROR(CheckIndices(ids, "ids"));
    specs.push_back({kInt32, ids.shape});
  }
  return specs;
}

absl::Status CheckUniqueIds(const TensorSpec& ids) {
  MU_RETURN_IF_ERROR(CheckType(ids, {kInt64}, "ids"));
  return CheckRank(ids, 1, "ids");
}

SpecsOr InferPullRows(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckTable(attrs));
  MU_RETURN_IF_ERROR(CheckUniqueIds(in[0]));
  return std::vector<TensorSpec>{{kFloat32, Shape({in[0].shape[0], attrs.Int("dim")})}};
}

SpecsOr InferPushRows(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckTable(attrs));
  MU_RETURN_IF_ERROR(CheckUniqueIds(in[0]));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "the gradient"));
  MU_RETURN_IF_ERROR(MergeShapes(in[1].shape, Shape({in[0].shape[0], attrs.Int("dim")})).status());
  return NoOutputs();
}

absl::StatusOr<int64_t> CheckSegments(const TensorSpec& rows, const TensorSpec& positions,
                                      const TensorSpec& splits, const TensorSpec* weights,
                                      const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const bool bag, IsBag(attrs));
  if (!bag) return absl::InvalidArgumentError("combiner must be sum, mean or sqrtn");
  MU_RETURN_IF_ERROR(CheckFloat(rows, "rows"));
  MU_RETURN_IF_ERROR(CheckRank(rows, 2, "rows"));
  MU_RETURN_IF_ERROR(CheckType(positions, {kInt32}, "positions"));
  return CheckBags(positions, splits, weights);
}

SpecsOr InferSegmentCombine(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const int64_t bags,
                      CheckSegments(in[0], in[1], in[2], in.size() == 4 ? &in[3] : nullptr, attrs));
  return std::vector<TensorSpec>{{kFloat32, Shape({bags, in[0].shape[1]})}};
}

SpecsOr InferSegmentCombineGrad(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const int64_t bags,
                      CheckSegments(in[3], in[1], in[2], in.size() == 5 ? &in[4] : nullptr, attrs));
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, Shape({bags, in[3].shape[1]})).status());
  return std::vector<TensorSpec>{in[3]};
}

OpDef Of(OpParameter parameter, OpDef def) {
  def.parameter = parameter;
  return def;
}

OpDef Effect(OpEffect effect, OpDef def) {
  def.effect = effect;
  def.outputs = 0;
  return def;
}

OpDef Pulls(OpDef def) {
  def.source = OpSource::kParameter;
  return def;
}

OpDef TracedOnly(OpDef def) {
  def.traced_only = true;
  return def;
}

OpDef Internal(OpDef def) {
  def.internal = true;
  return def;
}

std::vector<AttrDef> RowAttrs() {
  return {Required("table", AttrKind::kString), Required("id", AttrKind::kInt),
          Required("rows", AttrKind::kInt), Required("dim", AttrKind::kInt)};
}

void RegisterTracedOps(OpTable& table) {
  const std::vector<AttrDef> variable = {
      Required("variable", AttrKind::kString), Required("id", AttrKind::kInt),
      Required("dtype", AttrKind::kDType), Required("shape", AttrKind::kShape)};
  std::vector<AttrDef> lookup = RowAttrs();
  lookup.push_back(OptionalString("combiner", "none"));
  table.BeginSection(
      "Parameters",
      "A step reads parameters as they were at its beginning and changes them at its "
      "end. Updates have no result.");
  std::vector<AttrDef> added = variable;
  added.push_back(OptionalBool("moving", false));
  table.Add(
      Of(OpParameter::kVariable,
         Effect(OpEffect::kAdd, MakeOp("assign_add", 1, 1, InferAssignAdd, added))),
      "(delta: dtype[shape])",
      "Adds delta to the variable. One with a moving_part moves that part of the way to delta; "
      "of several in a step, to their mean.");
  table.Add(
      Of(OpParameter::kVariable,
         Effect(OpEffect::kGradient, MakeOp("apply_gradient", 1, 1, InferApplyGradient, variable))),
      "(grad: float32[shape])", "The variable's optimizer applies the gradient.");
  std::vector<AttrDef> range = variable;
  range.push_back(Required("first", AttrKind::kInt));
  range.push_back(Required("count", AttrKind::kInt));
  table.Add(
      Of(OpParameter::kVariable, Pulls(MakeOp("variable_rows", 0, 0, InferVariableRows, range))),
      "() -> dtype[count, shape[1:]]",
      "Rows [first, first + count) of the variable, as they were at the beginning of the step.");
  table.Add(
      Of(OpParameter::kVariable,
         Effect(OpEffect::kAdd, MakeOp("scatter_add", 2, 2, InferScatterAdd, variable))),
      "(rows: int64[n], delta: dtype[n, shape[1:]])",
      "Adds row i of delta to row rows[i] of the variable. A row may be there several times.");
  table.Add(Of(OpParameter::kVariable,
               Effect(OpEffect::kAssign, MakeOp("assign", 1, 1, InferAssign, variable))),
            "(value: dtype[shape])", "The variable gets this value.");
  table.Add(
      Of(OpParameter::kVariable,
         Effect(OpEffect::kAssign, MakeOp("scatter_update", 2, 2, InferScatterUpdate, variable))),
      "(rows: int64[n], value: dtype[n, shape[1:]])",
      "Row rows[i] of the variable gets row i of the value. Of a row that is there several times, "
      "the last one counts.");
  table.Add(Of(OpParameter::kVariable,
               Pulls(MakeOp("sharded_matmul", 1, 1, InferShardedMatmul, variable))),
            "(x: float32[batch, k]) -> float32[batch, n]",
            "x times the transposed variable, of shape [n, k]. The servers compute it, with the "
            "variable as it is when they do.");
  table.Add(Of(OpParameter::kVariable,
               Pulls(MakeOp("sharded_matmul_back", 1, 1, InferShardedMatmulBack, variable))),
            "(dy: float32[batch, n]) -> float32[batch, k]",
            "dy times the variable: the gradient of sharded_matmul's x. The servers compute it, "
            "partition by partition; the worker adds the parts up, in their order.");
  table.Add(Of(OpParameter::kVariable,
               Effect(OpEffect::kGradient,
                      MakeOp("apply_product_gradient", 2, 2, InferApplyProductGradient, variable))),
            "(dy: float32[batch, n], x: float32[batch, k])",
            "The variable's optimizer applies the gradient dy^T x, which the servers compute.");
  table.Add(
      Of(OpParameter::kTable,
         TracedOnly(Pulls(MakeOp("embedding_lookup", 1, 3, InferEmbeddingLookup, lookup)))),
      "(ids: int32 or int64 [...]) -> float32[..., dim], or (values: int32 or int64 [n], splits: "
      "int32[batch + 1], optional weights: float32[n]) -> float32[batch, dim]",
      "combiner none: a row for each id. sum, mean, sqrtn: bag b is values[splits[b] : "
      "splits[b + 1]]; splits start at 0, never fall and end at n. mean is the (weighted) sum "
      "divided by the bag's size (sum of weights), sqrtn that divided by the root of its size (of "
      "the sum of the weights' squares). A bag that is empty, or whose divisor is 0, gives zeros. "
      "Passes replace it.");
  table.Add(Of(OpParameter::kTable,
               TracedOnly(Effect(OpEffect::kGradient, MakeOp("embedding_gradient", 2, 4,
                                                             InferEmbeddingGradient, lookup)))),
            "(the lookup's inputs, grad: float32, the lookup's shape)",
            "The table's optimizer applies the gradients of the rows. Passes replace it.");
}

}  // namespace

void RegisterParameterOps(OpTable& table) {
  RegisterTracedOps(table);
  const std::vector<AttrDef> rows = RowAttrs();
  const std::vector<AttrDef> combiner = {Required("combiner", AttrKind::kString)};
  table.BeginSection(
      "Parameters, as passes leave them",
      "Only coordinator/passes make these. A function has at most one pull_rows and one push_rows "
      "per table, on the result of one unique; with micro_batches push_rows is on the result of "
      "accumulate_rows. Gradients of rows that gather (axis 0) took from "
      "pull_rows are gather_grad with pull_rows' result as `like`; those of several lookups are "
      "added up with add, in the order of the lookups.");
  OpDef unique = MakeOp("unique", 1, OpDef::kAnyNumber, InferUnique, {});
  unique.outputs = -1;
  table.Add(Internal(std::move(unique)),
            "(ids0, ids1, ...: int32 or int64 [...]) -> int64[U], and for each input int32 of its "
            "shape",
            "The distinct ids in order of first appearance (ids0 in row-major order, then ids1, "
            "...); then for each input where its ids are among them.");
  table.Add(
      Of(OpParameter::kTable, Internal(Pulls(MakeOp("pull_rows", 1, 1, InferPullRows, rows)))),
      "(ids: int64[U]) -> float32[U, dim]", "Those rows of the table.");
  table.Add(Internal(MakeOp("segment_combine", 3, 4, InferSegmentCombine, combiner)),
            "(rows: float32[U, dim], positions: int32[n], splits: int32[batch + 1], optional "
            "weights: float32[n]) -> float32[batch, dim]",
            "Bags of rows[positions], as in embedding_lookup.");
  table.Add(Internal(MakeOp("segment_combine_grad", 4, 5, InferSegmentCombineGrad, combiner)),
            "(dy: float32[batch, dim], positions, splits, like: float32[U, dim], optional weights) "
            "-> float32[U, dim]",
            "Zeros, plus for each value, in order, its share of its bag's dy at its position. sum: "
            "dy[b] * w; mean: dy[b] * w / (sum of the bag's w); sqrtn: dy[b] * w / sqrt(sum of the "
            "bag's w * w); w = 1 without weights.");
  table.Add(
      Of(OpParameter::kTable,
         Internal(Effect(OpEffect::kGradient, MakeOp("push_rows", 2, 2, InferPushRows, rows)))),
      "(ids: int64[U], grad: float32[U, dim])",
      "The table's optimizer applies the gradients of those rows.");
}

}  // namespace mu
