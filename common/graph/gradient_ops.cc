#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferReluGrad(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_RETURN_IF_ERROR(CheckFloat(in[1], "y"));
  MU_ASSIGN_OR_RETURN(Shape shape, MergeShapes(in[0].shape, in[1].shape));
  return std::vector<TensorSpec>{{kFloat32, shape}};
}

// `small` broadcasts to `large` without stretching `large`.
absl::Status CheckBroadcastsTo(const Shape& small, const Shape& large) {
  bool fits = small.rank() <= large.rank();
  for (int i = 0; fits && i < small.rank(); ++i) {
    fits = small[i] == 1 || MergeDims(small[i], large[large.rank() - small.rank() + i]).ok();
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shape ", small.ToString(), " cannot be broadcast to ", large.ToString()));
}

// x with an axis of size 1 at each of `axes`, as many as `rank` axes in all.
Shape Widen(const Shape& x, const std::vector<int>& axes, int rank) {
  Shape widened;
  int next = 0;
  for (int i = 0; i < rank; ++i) {
    widened.Append(std::binary_search(axes.begin(), axes.end(), i) ? 1 : x[next++]);
  }
  return widened;
}

SpecsOr InferBroadcastLike(Inputs in, const AttrReader& attrs) {
  const auto listed = attrs.Ints("axes");
  const Shape& like = in[1].shape;
  if (listed.empty()) {
    MU_RETURN_IF_ERROR(CheckBroadcastsTo(in[0].shape, like));
    return std::vector<TensorSpec>{{in[0].dtype, like}};
  }
  MU_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(listed, like.rank()));
  if (in[0].shape.rank() + static_cast<int>(axes.size()) != like.rank()) {
    return absl::InvalidArgumentError(absl::StrCat(in[0].ToString(), " with ", axes.size(),
                                                   " axes added has not the rank of ",
                                                   like.ToString()));
  }
  MU_RETURN_IF_ERROR(CheckBroadcastsTo(Widen(in[0].shape, axes, like.rank()), like));
  return std::vector<TensorSpec>{{in[0].dtype, like}};
}

SpecsOr InferReduceToLike(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "x"));
  MU_RETURN_IF_ERROR(CheckBroadcastsTo(in[1].shape, in[0].shape));
  return std::vector<TensorSpec>{{in[0].dtype, in[1].shape}};
}

SpecsOr InferReshapeLike(Inputs in, const AttrReader&) {
  const Shape& like = in[1].shape;
  if (in[0].shape.IsFullyKnown() && like.IsFullyKnown() &&
      in[0].shape.elements() != like.elements()) {
    return absl::InvalidArgumentError(
        absl::StrCat(in[0].ToString(), " cannot take the shape ", like.ToString()));
  }
  return std::vector<TensorSpec>{{in[0].dtype, like}};
}

SpecsOr InferSliceGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  const Shape& like = in[1].shape;
  const auto begin = attrs.Ints("begin");
  bool fits = in[0].shape.rank() == like.rank() && static_cast<int>(begin.size()) == like.rank();
  for (int i = 0; fits && i < like.rank(); ++i) {
    const int64_t size = std::max<int64_t>(in[0].shape[i], 0);
    fits = begin[i] >= 0 && begin[i] <= kLargestBegin &&
           (like[i] == kUnknownDim || (begin[i] <= like[i] && size <= like[i] - begin[i]));
  }
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("dy of shape ", in[0].shape.ToString(),
                                                   " is no such slice of ", like.ToString()));
  }
  return std::vector<TensorSpec>{{kFloat32, like}};
}

SpecsOr InferConcatPiece(Inputs in, const AttrReader& attrs) {
  const int64_t axis = attrs.Int("axis");
  const int64_t index = attrs.Int("index");
  MU_RETURN_IF_ERROR(CheckAxis(axis, in[0].shape.rank()));
  if (index < 0 || index + 1 >= static_cast<int64_t>(in.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no input ", index, " among ", in.size() - 1));
  }
  int64_t known = 0;
  for (size_t i = 1; i < in.size(); ++i) {
    bool fits = in[i].shape.rank() == in[0].shape.rank();
    for (int d = 0; fits && d < in[0].shape.rank(); ++d) {
      fits = d == axis || MergeDims(in[0].shape[d], in[i].shape[d]).ok();
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat("dy ", in[0].ToString(),
                                                     " is no concatenation with ", in[i].ToString(),
                                                     " along axis ", axis));
    }
    known += std::max<int64_t>(in[i].shape[static_cast<int>(axis)], 0);
  }
  const int64_t whole = in[0].shape[static_cast<int>(axis)];
  if (whole != kUnknownDim && known > whole) {
    return absl::InvalidArgumentError(
        absl::StrCat("the pieces have ", known, " entries along axis ", axis, ", dy has ", whole));
  }
  return std::vector<TensorSpec>{{in[0].dtype, in[index + 1].shape}};
}

SpecsOr InferGatherGrad(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckFloat(in[0], "dy"));
  MU_RETURN_IF_ERROR(CheckIndices(in[1], "indices"));
  const int64_t axis = attrs.Int("axis");
  const Shape& like = in[2].shape;
  MU_RETURN_IF_ERROR(CheckAxis(axis, like.rank()));
  Shape expected;
  for (int i = 0; i < like.rank(); ++i) {
    if (i != axis) {
      expected.Append(like[i]);
    } else {
      for (const int64_t dim : in[1].shape) expected.Append(dim);
    }
  }
  if (!MergeShapes(expected, in[0].shape).ok()) {
    return absl::InvalidArgumentError(absl::StrCat("dy of shape ", in[0].shape.ToString(),
                                                   " should have gather's shape ",
                                                   expected.ToString()));
  }
  return std::vector<TensorSpec>{{kFloat32, like}};
}

}  // namespace

void RegisterGradientOps(OpTable& table) {
  table.BeginSection("What gradients are made of",
                     "An input called `like` gives only its shape; its elements are not read.");
  table.Add(MakeOp("relu_grad", 2, 2, InferReluGrad), "(dy, y: float32, one shape) -> their shape",
            "dy where y > 0, else 0; y is relu's result.");
  table.Add(MakeOp("broadcast_like", 2, 2, InferBroadcastLike, {OptionalInts("axes")}),
            "(x, like: any) -> x's type, like's shape",
            "x gets an axis of size 1 at each of axes (positions in like; here an empty list means "
            "none), then is broadcast as numpy does.");
  table.Add(MakeOp("reduce_to_like", 2, 2, InferReduceToLike),
            "(x: numeric, like: any) -> x's type, like's shape",
            "Sums over the axes that broadcasting like to x's shape would repeat or add, in "
            "row-major order of x. Equal shapes: x itself.");
  table.Add(MakeOp("reshape_like", 2, 2, InferReshapeLike),
            "(x, like: any) -> x's type, like's shape", "x's elements in like's shape.");
  table.Add(MakeOp("slice_grad", 2, 2, InferSliceGrad, {Required("begin", AttrKind::kInts)}),
            "(dy: float32, like: any) -> float32, like's shape", "dy at begin, zero elsewhere.");
  table.Add(MakeOp("concat_piece", 2, OpDef::kAnyNumber, InferConcatPiece,
                   {Required("axis", AttrKind::kInt), Required("index", AttrKind::kInt)}),
            "(dy, x0, x1, ...: any) -> dy's type, the shape of x`index`",
            "The part of dy along axis that x`index` would be in concat(x0, x1, ...); only the "
            "shapes of x0, x1, ... are read.");
  table.Add(MakeOp("gather_grad", 3, 3, InferGatherGrad, {OptionalInt("axis", 0)}),
            "(dy: float32, indices: int32 or int64, like: any) -> float32, like's shape",
            "Zeros, plus each slice of dy added at its index along axis, in the order of the "
            "indices. OUT_OF_RANGE as gather.");
}

}  // namespace mu
