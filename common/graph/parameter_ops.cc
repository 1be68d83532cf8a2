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

SpecsOr InferApplyGradient(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "the gradient"));
  MU_RETURN_IF_ERROR(CheckUpdate(in[0], attrs, "the gradient"));
  return NoOutputs();
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
  if (combiner == "sum" || combiner == "mean") return true;
  return absl::InvalidArgumentError(
      absl::StrCat("combiner must be none, sum or mean, got \"", combiner, "\""));
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
  if (!bag) return absl::InvalidArgumentError("combiner must be sum or mean");
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

OpDef Effect(OpDef def) {
  def.has_effect = true;
  def.outputs = 0;
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

}  // namespace

void RegisterParameterOps(OpTable& table) {
  const std::vector<AttrDef> variable = {
      Required("variable", AttrKind::kString), Required("id", AttrKind::kInt),
      Required("dtype", AttrKind::kDType), Required("shape", AttrKind::kShape)};
  const std::vector<AttrDef> rows = {
      Required("table", AttrKind::kString), Required("id", AttrKind::kInt),
      Required("rows", AttrKind::kInt), Required("dim", AttrKind::kInt)};
  std::vector<AttrDef> lookup = rows;
  lookup.push_back(OptionalString("combiner", "none"));
  const std::vector<AttrDef> combiner = {Required("combiner", AttrKind::kString)};

  table.Add(Effect(MakeOp("assign_add", 1, 1, InferAssignAdd, variable)));
  table.Add(Effect(MakeOp("apply_gradient", 1, 1, InferApplyGradient, variable)));
  table.Add(TracedOnly(MakeOp("embedding_lookup", 1, 3, InferEmbeddingLookup, lookup)));
  table.Add(TracedOnly(Effect(MakeOp("embedding_gradient", 2, 4, InferEmbeddingGradient, lookup))));

  OpDef unique = MakeOp("unique", 1, OpDef::kAnyNumber, InferUnique, {});
  unique.outputs = -1;
  table.Add(Internal(std::move(unique)));
  table.Add(Internal(MakeOp("pull_rows", 1, 1, InferPullRows, rows)));
  table.Add(Internal(Effect(MakeOp("push_rows", 2, 2, InferPushRows, rows))));
  table.Add(Internal(MakeOp("segment_combine", 3, 4, InferSegmentCombine, combiner)));
  table.Add(Internal(MakeOp("segment_combine_grad", 4, 5, InferSegmentCombineGrad, combiner)));
}

}  // namespace mu
