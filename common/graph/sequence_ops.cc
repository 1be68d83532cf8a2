#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

// [batch, length, ...] for values [n, ...] and splits [batch + 1].
absl::StatusOr<Shape> PaddedShape(const TensorSpec& values, const TensorSpec& splits,
                                  const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckType(splits, {kInt32}, "splits"));
  MU_RETURN_IF_ERROR(CheckRank(splits, 1, "splits"));
  if (values.shape.rank() == 0)
    return absl::InvalidArgumentError("values must have at least one axis");
  if (splits.shape[0] == 0)
    return absl::InvalidArgumentError("splits has batch + 1 entries, got 0");
  const int64_t length = attrs.Int("length");
  if (length <= 0 || length > kLargestBegin)
    return absl::InvalidArgumentError(absl::StrCat("length must be positive, got ", length));
  Shape shape({splits.shape[0] == kUnknownDim ? kUnknownDim : splits.shape[0] - 1, length});
  for (int i = 1; i < values.shape.rank(); ++i) shape.Append(values.shape[i]);
  return shape;
}

SpecsOr InferPadSequences(Inputs in, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in[0], in[1], attrs));
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferPadSequencesGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(const Shape shape, PaddedShape(in[2], in[1], attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, shape).status());
  return std::vector<TensorSpec>{{kFloat32, in[2].shape}};
}

}  // namespace

void RegisterSequenceOps(OpTable& table) {
  const std::vector<AttrDef> attrs = {Required("length", AttrKind::kInt),
                                      OptionalBool("keep_last", false)};
  table.BeginSection(
      "Sequences",
      "Sequence b is values[splits[b] : splits[b + 1]]; splits start at 0, never fall "
      "and end at the number of values.");
  table.Add(
      MakeOp("pad_sequences", 2, 2, InferPadSequences, attrs),
      "(values: any [n, ...], splits: int32[batch + 1]) -> values' type [batch, length, ...]",
      "Each sequence from its own row's beginning, zeros behind it. Of one that is longer than "
      "length, the first or (keep_last) the last values are kept.");
  table.Add(MakeOp("pad_sequences_grad", 3, 3, InferPadSequencesGrad, attrs),
            "(dy: float32[batch, length, ...], splits: int32[batch + 1], like: any [n, ...]) -> "
            "float32, like's shape",
            "For each value its entry of dy; 0 for those that were cut off. Of like only the shape "
            "is read.");
}

}  // namespace mu
