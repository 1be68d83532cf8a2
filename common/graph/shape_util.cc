#include "common/graph/shape_util.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status.h"

namespace mu {

AttrDef Required(std::string name, AttrKind kind) { return {std::move(name), kind, true, {}}; }

AttrDef OptionalInt(std::string name, int64_t value) {
  AttrDef def{std::move(name), AttrKind::kInt, false, {}};
  def.default_value.set_i(value);
  return def;
}

AttrDef OptionalFloat(std::string name, float value) {
  AttrDef def{std::move(name), AttrKind::kFloat, false, {}};
  def.default_value.set_f(value);
  return def;
}

AttrDef OptionalBool(std::string name, bool value) {
  AttrDef def{std::move(name), AttrKind::kBool, false, {}};
  def.default_value.set_b(value);
  return def;
}

AttrDef OptionalInts(std::string name) {
  AttrDef def{std::move(name), AttrKind::kInts, false, {}};
  def.default_value.mutable_ints();
  return def;
}

AttrDef OptionalString(std::string name, std::string value) {
  AttrDef def{std::move(name), AttrKind::kString, false, {}};
  def.default_value.set_s(std::move(value));
  return def;
}

absl::Status CheckType(const TensorSpec& spec, std::initializer_list<DType> types,
                       absl::string_view what) {
  if (std::find(types.begin(), types.end(), spec.dtype) != types.end()) return absl::OkStatus();
  std::vector<std::string> names;
  for (const DType type : types) names.emplace_back(DTypeName(type));
  return absl::InvalidArgumentError(
      absl::StrCat(what, " must be ", absl::StrJoin(names, " or "), ", got ", spec.ToString()));
}

absl::Status CheckNumeric(const TensorSpec& spec, absl::string_view what) {
  return CheckType(spec, {kFloat32, kInt32, kInt64}, what);
}

absl::Status CheckFloat(const TensorSpec& spec, absl::string_view what) {
  return CheckType(spec, {kFloat32}, what);
}

absl::Status CheckIndices(const TensorSpec& spec, absl::string_view what) {
  return CheckType(spec, {kInt32, kInt64}, what);
}

absl::Status CheckSameType(absl::Span<const TensorSpec> inputs) {
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].dtype != inputs[0].dtype) {
      return absl::InvalidArgumentError(absl::StrCat("takes inputs of one type, got ",
                                                     inputs[0].ToString(), " and ",
                                                     inputs[i].ToString(), " (cast one of them)"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRank(const TensorSpec& spec, int rank, absl::string_view what) {
  if (spec.shape.rank() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " must have ", rank, rank == 1 ? " axis" : " axes", ", got ", spec.ToString()));
}

absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b) {
  if (a == kUnknownDim) return b;
  if (b == kUnknownDim || a == b) return a;
  return absl::InvalidArgumentError(absl::StrCat("sizes ", a, " and ", b, " differ"));
}

absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b) {
  bool same = a.rank() == b.rank();
  Shape merged = a;
  for (int i = 0; same && i < a.rank(); ++i) {
    const absl::StatusOr<int64_t> dim = MergeDims(a[i], b[i]);
    if (dim.ok()) merged[i] = *dim;
    same = dim.ok();
  }
  if (!same) {
    return absl::InvalidArgumentError(
        absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " differ"));
  }
  return merged;
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    const int in_a = i - (rank - a.rank());
    const int in_b = i - (rank - b.rank());
    const int64_t x = in_a < 0 ? 1 : a[in_a];
    const int64_t y = in_b < 0 ? 1 : b[in_b];
    if (x == 1) {
      shape.Append(y);
    } else if (y == 1 || x == y || y == kUnknownDim) {
      shape.Append(x);
    } else if (x == kUnknownDim) {
      shape.Append(y);
    } else {
      return absl::InvalidArgumentError(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(),
                                                     " cannot be broadcast together"));
    }
  }
  return shape;
}

absl::Status CheckAxis(int64_t axis, int rank) {
  if (axis >= 0 && axis < rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("axis ", axis, " is outside a tensor of ", rank, " axes"));
}

absl::StatusOr<std::vector<int>> ResolveAxes(absl::Span<const int64_t> axes, int rank) {
  std::vector<int> resolved;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) resolved.push_back(i);
    return resolved;
  }
  for (const int64_t axis : axes) {
    MU_RETURN_IF_ERROR(CheckAxis(axis, rank));
    resolved.push_back(static_cast<int>(axis));
  }
  std::sort(resolved.begin(), resolved.end());
  if (std::adjacent_find(resolved.begin(), resolved.end()) != resolved.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("axes ", absl::StrJoin(axes, ", "), " name one axis twice"));
  }
  return resolved;
}

absl::StatusOr<Shape> ReducedShape(const Shape& x, const AttrReader& attrs) {
  MU_ASSIGN_OR_RETURN(const std::vector<int> axes, ResolveAxes(attrs.Ints("axes"), x.rank()));
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      shape.Append(x[i]);
    } else if (attrs.Bool("keep_dims")) {
      shape.Append(1);
    }
  }
  return shape;
}

}  // namespace mu
