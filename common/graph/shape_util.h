// Shared by the shape functions of the op table.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "common/graph/op_table.h"

namespace mu {

// No position along an axis may be beyond it, so that kernels can add sizes without overflow.
inline constexpr int64_t kLargestBegin = int64_t{1} << 40;

// Attribute definitions.
AttrDef Required(std::string name, AttrKind kind);
AttrDef OptionalInt(std::string name, int64_t value);
AttrDef OptionalFloat(std::string name, float value);
AttrDef OptionalBool(std::string name, bool value);
AttrDef OptionalInts(std::string name);  // default: an empty list
AttrDef OptionalString(std::string name, std::string value);

// INVALID_ARGUMENT unless the input has one of the types; `what` names it ("input 0", "labels").
absl::Status CheckType(const TensorSpec& spec, std::initializer_list<DType> types,
                       absl::string_view what);
absl::Status CheckNumeric(const TensorSpec& spec, absl::string_view what);  // float32, int32, int64
absl::Status CheckFloat(const TensorSpec& spec, absl::string_view what);
absl::Status CheckIndices(const TensorSpec& spec, absl::string_view what);  // int32, int64
absl::Status CheckSameType(absl::Span<const TensorSpec> inputs);
absl::Status CheckRank(const TensorSpec& spec, int rank, absl::string_view what);

// The size that both agree on: the known one of two; INVALID_ARGUMENT if both are known and differ.
absl::StatusOr<int64_t> MergeDims(int64_t a, int64_t b);

// The same for shapes of one rank. "shapes [2, 3] and [2, 4] differ"
absl::StatusOr<Shape> MergeShapes(const Shape& a, const Shape& b);

// numpy's rule. An unknown size against a known one above 1 becomes the known one; the kernel
// checks the rest.
absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// Checks 0 <= axis < rank.
absl::Status CheckAxis(int64_t axis, int rank);

// The axes an attribute lists (distinct, in range), sorted; all of them for an empty list.
absl::StatusOr<std::vector<int>> ResolveAxes(absl::Span<const int64_t> axes, int rank);

// x without the axes that a reduction's attributes "axes" and "keep_dims" name, or with size 1
// there.
absl::StatusOr<Shape> ReducedShape(const Shape& x, const AttrReader& attrs);

}  // namespace mu
