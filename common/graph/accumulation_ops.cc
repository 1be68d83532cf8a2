#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferAccumulate(Inputs in, const AttrReader& attrs) {
  const std::string& combine = attrs.String("combine");
  if (combine == "mean") {
    MU_RETURN_IF_ERROR(CheckFloat(in[0], "what is averaged"));
  } else if (combine == "sum") {
    MU_RETURN_IF_ERROR(CheckNumeric(in[0], "what is added up"));
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("combine must be mean or sum, got \"", combine, "\""));
  }
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferAccumulateRows(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckType(in[0], {kInt64}, "ids"));
  MU_RETURN_IF_ERROR(CheckRank(in[0], 1, "ids"));
  const TensorSpec* const inputs[] = {&in[1], &in[2]};
  for (const TensorSpec* rows : inputs) {
    const char* const what = rows == inputs[0] ? "the gradient" : "rows";
    MU_RETURN_IF_ERROR(CheckFloat(*rows, what));
    MU_RETURN_IF_ERROR(CheckRank(*rows, 2, what));
    MU_RETURN_IF_ERROR(MergeDims(in[0].shape[0], rows->shape[0]).status());
  }
  MU_ASSIGN_OR_RETURN(const int64_t dim, MergeDims(in[1].shape[1], in[2].shape[1]));
  const TensorSpec rows{kFloat32, Shape({kUnknownDim, dim})};
  return std::vector<TensorSpec>{{kInt64, Shape({kUnknownDim})}, rows, rows};
}

OpDef OfSlices(OpDef def) {
  def.source = OpSource::kSlices;
  def.internal = true;
  return def;
}

}  // namespace

void RegisterAccumulationOps(OpTable& table) {
  table.BeginSection(
      "Accumulation over the slices of a batch",
      "Only coordinator/passes make these, in functions with micro_batches. What their inputs need "
      "is computed for each slice of the step's batch, what depends on them once, after the last "
      "slice.");
  table.Add(OfSlices(MakeOp("accumulate", 1, 1, InferAccumulate,
                            {Required("combine", AttrKind::kString)})),
            "(x: numeric; float32 for mean) -> x's type and shape",
            "mean: the sum over the slices of x times the slice's part of the batch's records. "
            "sum: the sum of x over the slices. x has one shape in all of them.");
  OpDef rows = MakeOp("accumulate_rows", 3, 3, InferAccumulateRows, {});
  rows.outputs = 3;
  table.Add(OfSlices(std::move(rows)),
            "(ids: int64[U], grad: float32[U, dim], rows: float32[U, dim]) -> (int64[V], "
            "float32[V, dim], float32[V, dim])",
            "The distinct ids of all slices in order of first appearance; for each the mean of its "
            "gradients, as accumulate's, with 0 where a slice lacks it; and its row as the first "
            "slice that has it saw it.");
}

}  // namespace mu
