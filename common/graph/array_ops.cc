#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"
#include "common/graph/register_ops.h"
#include "common/graph/shape_util.h"

namespace mu {
namespace {

using Inputs = absl::Span<const TensorSpec>;

SpecsOr InferConcat(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckSameType(in));
  const int64_t axis = attrs.Int("axis");
  Shape shape = in[0].shape;
  MU_RETURN_IF_ERROR(CheckAxis(axis, shape.rank()));
  for (size_t i = 1; i < in.size(); ++i) {
    bool fits = in[i].shape.rank() == shape.rank();
    for (int d = 0; fits && d < shape.rank(); ++d) {
      const int64_t more = in[i].shape[d];
      if (d == axis) {
        shape[d] = shape[d] == kUnknownDim || more == kUnknownDim ? kUnknownDim : shape[d] + more;
      } else {
        const absl::StatusOr<int64_t> merged = MergeDims(shape[d], more);
        fits = merged.ok();
        if (fits) shape[d] = *merged;
      }
    }
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", i, " of shape ", in[i].shape.ToString(), " does not fit input 0 of shape ",
          in[0].shape.ToString(), " along axis ", axis));
    }
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferSlice(Inputs in, const AttrReader& attrs) {
  const auto begin = attrs.Ints("begin");
  const auto size = attrs.Ints("size");
  const int rank = in[0].shape.rank();
  if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"begin\" and \"size\" need an entry for each of the ", rank, " axes of ",
                     in[0].ToString()));
  }
  Shape shape = in[0].shape;
  for (int i = 0; i < rank; ++i) {
    const int64_t dim = shape[i];
    const bool absurd = begin[i] < 0 || begin[i] > kLargestBegin || size[i] < -1;
    if (absurd ||
        (dim != kUnknownDim && (begin[i] > dim || (size[i] >= 0 && size[i] > dim - begin[i])))) {
      return absl::InvalidArgumentError(absl::StrCat("a slice from ", begin[i], " of size ",
                                                     size[i], " leaves axis ", i, " of ",
                                                     in[0].ToString()));
    }
    if (size[i] >= 0) {
      shape[i] = size[i];
    } else if (dim == kUnknownDim) {
      shape[i] = kUnknownDim;
    } else {
      shape[i] = dim - begin[i];
    }
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferReshape(Inputs in, const AttrReader& attrs) {
  Shape shape = attrs.GetShape("shape");
  int wildcard = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == kUnknownDim) {
      if (wildcard >= 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("new shape ", shape.ToString(), " has more than one unknown size"));
      }
      wildcard = i;
    } else if (shape[i] > 0 && known > (int64_t{1} << 40) / shape[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("new shape ", shape.ToString(), " is too large"));
    } else {
      known *= shape[i];
    }
  }
  if (in[0].shape.IsFullyKnown()) {
    const int64_t elements = in[0].shape.elements();
    const bool fits = wildcard < 0 ? known == elements : known > 0 && elements % known == 0;
    if (!fits) {
      return absl::InvalidArgumentError(absl::StrCat(
          in[0].ToString(), " has ", elements, " elements and cannot become ", shape.ToString()));
    }
    if (wildcard >= 0) shape[wildcard] = elements / known;
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferTranspose(Inputs in, const AttrReader& attrs) {
  const auto perm = attrs.Ints("perm");
  const int rank = in[0].shape.rank();
  std::vector<bool> seen(rank, false);
  Shape shape;
  bool valid = static_cast<int>(perm.size()) == rank;
  for (size_t i = 0; valid && i < perm.size(); ++i) {
    valid = perm[i] >= 0 && perm[i] < rank && !seen[perm[i]];
    if (!valid) break;
    seen[perm[i]] = true;
    shape.Append(in[0].shape[static_cast<int>(perm[i])]);
  }
  if (!valid) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", absl::StrJoin(perm, ", "), "] is no permutation of the axes of ", in[0].ToString()));
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferGather(Inputs in, const AttrReader& attrs) {
  MU_RETURN_IF_ERROR(CheckIndices(in[1], "indices"));
  const int64_t axis = attrs.Int("axis");
  MU_RETURN_IF_ERROR(CheckAxis(axis, in[0].shape.rank()));
  Shape shape;
  for (int i = 0; i < in[0].shape.rank(); ++i) {
    if (i != axis) {
      shape.Append(in[0].shape[i]);
    } else {
      for (const int64_t dim : in[1].shape) shape.Append(dim);
    }
  }
  return std::vector<TensorSpec>{{in[0].dtype, shape}};
}

SpecsOr InferFill(Inputs in, const AttrReader&) {
  MU_RETURN_IF_ERROR(CheckNumeric(in[0], "input 0"));
  return std::vector<TensorSpec>{in[0]};
}

}  // namespace

void RegisterArrayOps(OpTable& table) {
  table.BeginSection("Moving data", "");
  table.Add(MakeOp("concat", 1, OpDef::kAnyNumber, InferConcat, {Required("axis", AttrKind::kInt)}),
            "(x0, x1, ...: any, one type; equal sizes but along axis) -> their type",
            "One after the other along axis.");
  table.Add(MakeOp("slice", 1, 1, InferSlice,
                   {Required("begin", AttrKind::kInts), Required("size", AttrKind::kInts)}),
            "(x: any) -> x's type",
            "The box of x that starts at begin; begin and size have an entry for each axis, and a "
            "size of -1 reaches to the end.");
  table.Add(MakeOp("reshape", 1, 1, InferReshape, {Required("shape", AttrKind::kShape)}),
            "(x: any) -> x's type, shape",
            "x's elements in another shape, which has at most one -1, found from the rest.");
  table.Add(MakeOp("transpose", 1, 1, InferTranspose, {Required("perm", AttrKind::kInts)}),
            "(x: any) -> x's type", "Axis i of the result is axis perm[i] of x.");
  table.Add(MakeOp("gather", 2, 2, InferGather, {OptionalInt("axis", 0)}),
            "(params: any, indices: int32 or int64, any rank) -> params' type; params' sizes with "
            "those of indices in place of axis",
            "The entries of params along axis that indices name. OUT_OF_RANGE for an index outside "
            "of [0, size).");
  table.Add(MakeOp("zeros_like", 1, 1, InferFill, {}), "(x: numeric) -> x's type and shape",
            "Zeros.");
  table.Add(MakeOp("ones_like", 1, 1, InferFill, {}), "(x: numeric) -> x's type and shape",
            "Ones.");
}

}  // namespace mu
