#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferDropout(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "input 0"));
  const float rate = attrs.Float("rate");
  if (!(rate >= 0 && rate < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rate must be at least 0 and below 1, got ", rate));
  }
  return std::vector<TensorSpec>{in[0]};
}

SpecsOr InferRandomUniform(Inputs in, const AttrReader& attrs) {
  const float low = attrs.Float("low"), high = attrs.Float("high");
  if (!(low < high) || !std::isfinite(high - low)) {
    return absl::InvalidArgumentError(
        absl::StrCat("draws from [low, high), which [", low, ", ", high, ") is not"));
  }
  return std::vector<TensorSpec>{{kFloat32, in[0].shape}};
}

OpDef Random(OpDef def) {
  def.random = true;
  def.attrs.push_back(Required("seed", AttrKind::kInt));
  def.attrs.push_back(Required("index", AttrKind::kInt));
  return def;
}

}  // namespace

void RegisterRandomOps(OpTable& table) {
  table.BeginSection("Random numbers",
                     "They are a function of seed (the job's and the function's), of index (which "
                     "random op of its "
                     "graph it is), of the step's number in the job, of the slice of its batch "
                     "(micro_batches) and of the element. Steps of functions that change nothing "
                     "are numbered by themselves. So a step "
                     "that runs again, "
                     "on any worker, draws the same.");
  table.Add(Random(MakeOp("dropout", 1, 1, InferDropout, {Required("rate", AttrKind::kFloat)})),
            "(x: float32) -> x's shape",
            "0 with probability rate, else x / (1 - rate). Its gradient is itself, of dy.");
  table.Add(Random(MakeOp("random_uniform", 1, 1, InferRandomUniform,
                          {OptionalFloat("low", 0), OptionalFloat("high", 1)})),
            "(like: any) -> float32, like's shape", "Uniform in [low, high).");
}

}  // namespace mu
