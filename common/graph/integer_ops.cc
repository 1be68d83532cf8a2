#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferDivision(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckIndices(in[0], "input 0"));
  MU_RETURN_IF_ERROR(CheckIndices(in[1], "input 1"));
  MU_RETURN_IF_ERROR(CheckSameType(in));
  MU_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferHashBucket(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckIndices(in[0], "ids"));
  if (attrs.Int("buckets") <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("buckets must be positive, got ", attrs.Int("buckets")));
  }
  return std::vector<TensorSpec>{{kInt64, in[0].shape}};
}

}  // namespace

void RegisterIntegerOps(OpTable& table) {
  table.BeginSection("Arithmetic of ids",
                     "For crosses and buckets. INVALID_ARGUMENT for a division by 0.");
  const char* const division = "(a, b: int32 or int64, one type) -> their type, broadcast";
  table.Add(MakeOp("floor_divide", 2, 2, InferDivision), division,
            "The largest integer that is not above a / b.");
  table.Add(MakeOp("modulo", 2, 2, InferDivision), division,
            "a - b * floor_divide(a, b): it has the sign of b.");
  table.Add(
      MakeOp("hash_bucket", 1, 1, InferHashBucket,
             {Required("buckets", AttrKind::kInt), OptionalInt("seed", 0)}),
      "(ids: int32 or int64) -> int64, ids' shape",
      "A bucket in [0, buckets) for each id: HashCombine(seed, id) of common/base/hash.h times "
      "buckets, divided by 2^64. The same on every machine and in every version.");
}

}  // namespace mu
