#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferExpandDims(Inputs in, const AttrReader& attrs) {
  const auto listed = attrs.Ints("axes");
  if (listed.empty()) return absl::InvalidArgumentError("attribute \"axes\" is empty");
  const int rank = in[0].shape.rank() + static_cast<int>(listed.size());
  MU_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(listed, rank));
  Shape shape;
  int next = 0;
  for (int i = 0; i < rank; ++i) {
    shape.Append(std::binary_search(axes.begin(), axes.end(), i) ? 1 : in[0].shape[next++]);
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferSqueeze(Inputs in, const AttrReader& attrs) {
  const auto listed = attrs.Ints("axes");
  if (listed.empty()) return absl::InvalidArgumentError("attribute \"axes\" is empty");
  MU_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(listed, in[0].shape.rank()));
  Shape shape;
  for (int i = 0; i < in[0].shape.rank(); ++i) {
    const int64_t dim = in[0].shape[i];
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      shape.Append(dim);
    } else if (dim != 1 && dim != kUnknownDim) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis ", i, " of ", in[0].ToString(), " has not size 1"));
    }
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

// `multiples` has an entry of at least 1 for each axis.
absl::Status CheckMultiples(absl::Span<const int64_t> multiples, int rank) {
  bool fits = static_cast<int>(multiples.size()) == rank;
  for (const int64_t multiple : multiples) {
    fits = fits && multiple >= 1 && multiple <= kLargestBegin;
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"multiples\" needs an entry from 1 on for each of the ", rank, " axes"));
}

SpecsOr InferTile(Inputs in, const AttrReader& attrs) {
  const auto multiples = attrs.Ints("multiples");
  MU_RETURN_IF_ERROR(CheckMultiples(multiples, in[0].shape.rank()));
  Shape shape = in[0].shape;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == kUnknownDim) continue;
    if (shape[i] > kLargestBegin / multiples[i])
      return absl::InvalidArgumentError("makes a tensor that is too large");
    shape[i] *= multiples[i];
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferTileGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_ASSIGN_OR_RETURN(const std::vector<TensorSpec> tiled, InferTile(in.subspan(1), attrs));
  MU_RETURN_IF_ERROR(MergeShapes(in[0].shape, tiled[0].shape).status());
  return std::vector<TensorSpec>{{kFloat32, in[1].shape}};
}

// An entry in [0, kLargestBegin] for each axis.
absl::Status CheckMargin(absl::Span<const int64_t> margin, int rank, const char* what) {
  bool fits = static_cast<int>(margin.size()) == rank;
  for (const int64_t size : margin) fits = fits && size >= 0 && size <= kLargestBegin;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", what, "\" needs an entry from 0 on for each of the ", rank, " axes"));
}

SpecsOr InferPad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  Shape shape = in[0].shape;
  const auto before = attrs.Ints("before"), after = attrs.Ints("after");
  MU_RETURN_IF_ERROR(CheckMargin(before, shape.rank(), "before"));
  MU_RETURN_IF_ERROR(CheckMargin(after, shape.rank(), "after"));
  const float value = attrs.Float("value");
  const bool whole = value == std::floor(value) && std::fabs(value) <= 16777216.0f;
  if (in[0].dtype != kFloat32 && !whole) {
    return absl::InvalidArgumentError(
        absl::StrCat("integers cannot be padded with ", value, "; use one of at most 24 bits"));
  }
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] != kUnknownDim) shape[i] += before[i] + after[i];
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferUnpad(Inputs in, const AttrReader& attrs) {
  const auto before = attrs.Ints("before");
  const Shape& like = in[1].shape;
  MU_RETURN_IF_ERROR(CheckMargin(before, in[0].shape.rank(), "before"));
  bool fits = like.rank() == in[0].shape.rank();
  for (int i = 0; fits && i < like.rank(); ++i) {
    const int64_t dim = in[0].shape[i];
    fits = dim == kUnknownDim || before[i] + std::max<int64_t>(like[i], 0) <= dim;
  }
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat(in[0].ToString(), " has no such box of shape ", like.ToString()));
  }
  return std::vector<TensorSpec>{{in[0].dtype, like}};
}

SpecsOr InferSame(Inputs in, const AttrReader&) { return std::vector<TensorSpec>{in[0]}; }

}  // namespace

void RegisterLayoutOps(OpTable& table) {
  const AttrDef multiples = Required("multiples", AttrKind::kInts);
  const AttrDef before = Required("before", AttrKind::kInts);
  table.BeginSection("Axes, repetition and margins", "");
  table.Add(MakeOp("expand_dims", 1, 1, InferExpandDims, {Required("axes", AttrKind::kInts)}),
            "(x: any) -> x's type",
            "x with an axis of size 1 at each of axes, which are positions in the result.");
  table.Add(MakeOp("squeeze", 1, 1, InferSqueeze, {Required("axes", AttrKind::kInts)}),
            "(x: any) -> x's type", "x without those axes, which have size 1.");
  table.Add(MakeOp("tile", 1, 1, InferTile, {multiples}), "(x: any) -> x's type",
            "x repeated multiples[i] times along each axis i.");
  table.Add(MakeOp("tile_grad", 2, 2, InferTileGrad, {multiples}),
            "(dy: float32, like: any) -> float32, like's shape",
            "The sum of the repetitions that dy has, as tile makes them; of like only the shape is "
            "read.");
  table.Add(
      MakeOp("pad", 1, 1, InferPad,
             {before, Required("after", AttrKind::kInts), OptionalFloat("value", 0)}),
      "(x: numeric) -> x's type",
      "x with before[i] and after[i] entries of value (cast to x's type) around it along axis i.");
  table.Add(
      MakeOp("unpad", 2, 2, InferUnpad, {before}), "(dy, like: any) -> dy's type, like's shape",
      "The box of dy that starts at before and has like's shape, which is all that is read of "
      "like.");
  table.Add(MakeOp("stop_gradient", 1, 1, InferSame), "(x: any) -> x's type and shape",
            "x. No gradient passes through it.");
}

}  // namespace mu
