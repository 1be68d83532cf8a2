#include "common/graph/op_def.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"

namespace mu {

std::string TensorSpec::ToString() const {
  const absl::string_view name = DTypeName(dtype);
  return absl::StrCat(name, shape.ToString());
}

const char* AttrKindName(AttrKind kind) {
  switch (kind) {
    case AttrKind::kInt:
      return "int";
    case AttrKind::kFloat:
      return "float";
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kString:
      return "string";
    case AttrKind::kInts:
      return "ints";
    case AttrKind::kDType:
      return "dtype";
    case AttrKind::kShape:
      return "shape";
    case AttrKind::kTensor:
      return "tensor";
  }
  return "unknown";
}

bool KindOfAttr(const pb::AttrValue& value, AttrKind* kind) {
  switch (value.value_case()) {
    case pb::AttrValue::kI:
      *kind = AttrKind::kInt;
      return true;
    case pb::AttrValue::kF:
      *kind = AttrKind::kFloat;
      return true;
    case pb::AttrValue::kB:
      *kind = AttrKind::kBool;
      return true;
    case pb::AttrValue::kS:
      *kind = AttrKind::kString;
      return true;
    case pb::AttrValue::kInts:
      *kind = AttrKind::kInts;
      return true;
    case pb::AttrValue::kDtype:
      *kind = AttrKind::kDType;
      return true;
    case pb::AttrValue::kShape:
      *kind = AttrKind::kShape;
      return true;
    case pb::AttrValue::kTensor:
      *kind = AttrKind::kTensor;
      return true;
    case pb::AttrValue::VALUE_NOT_SET:
      return false;
  }
  return false;
}

const pb::AttrValue& AttrReader::Find(absl::string_view name) const {
  for (const AttrDef& def : defs_) {
    if (def.name != name) continue;
    const auto found = attrs_.find(def.name);
    return found == attrs_.end() ? def.default_value : found->second;
  }
  MU_CHECK(false &&
           "a shape function or kernel asked for an attribute that the op table does not list");
  std::abort();
}

namespace {

// Sizes are bounded so that products of two of them, and bytes, fit an int64.
constexpr int64_t kLargestDim = int64_t{1} << 40;
constexpr int kLargestRank = 16;

absl::Status CheckValue(const AttrDef& def, const pb::AttrValue& value) {
  if (def.kind == AttrKind::kDType && ElementSize(value.dtype()) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("attribute \"", def.name, "\" is not an element type"));
  }
  if (def.kind == AttrKind::kShape) {
    if (value.shape().dims_size() > kLargestRank) {
      return absl::InvalidArgumentError(absl::StrCat("attribute \"", def.name, "\" has ",
                                                     value.shape().dims_size(), " axes, more than ",
                                                     kLargestRank));
    }
    for (const int64_t dim : value.shape().dims()) {
      if (dim < kUnknownDim || dim > kLargestDim) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute \"", def.name, "\" has the size ", dim, ", which cannot be"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status OpDef::CheckAttrs(const AttrMap& attributes) const {
  for (const auto& [key, value] : attributes) {
    const AttrDef* def = nullptr;
    std::vector<std::string> names;
    for (const AttrDef& candidate : attrs) {
      names.push_back(candidate.name);
      if (candidate.name == key) def = &candidate;
    }
    if (def == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no attribute \"", key, "\"", DidYouMean(key, names)));
    }
    AttrKind kind;
    if (!KindOfAttr(value, &kind) || kind != def->kind) {
      return absl::InvalidArgumentError(
          absl::StrCat("attribute \"", key, "\" must be of kind ", AttrKindName(def->kind)));
    }
    MU_RETURN_IF_ERROR(CheckValue(*def, value));
  }
  for (const AttrDef& def : attrs) {
    if (def.required && attributes.find(def.name) == attributes.end()) {
      return absl::InvalidArgumentError(absl::StrCat("lacks attribute \"", def.name, "\""));
    }
  }
  return absl::OkStatus();
}

SpecsOr OpDef::Infer(absl::Span<const TensorSpec> inputs, const AttrMap& attributes) const {
  const int count = static_cast<int>(inputs.size());
  if (count < min_inputs || count > max_inputs) {
    const std::string wanted = max_inputs == kAnyNumber ? absl::StrCat("at least ", min_inputs)
                               : min_inputs == max_inputs
                                   ? absl::StrCat(min_inputs)
                                   : absl::StrCat(min_inputs, " to ", max_inputs);
    return absl::InvalidArgumentError(absl::StrCat("takes ", wanted, " inputs, got ", count));
  }
  MU_RETURN_IF_ERROR(CheckAttrs(attributes));
  MU_ASSIGN_OR_RETURN(std::vector<TensorSpec> result, infer(inputs, Read(attributes)));
  for (const TensorSpec& spec : result) {
    if (spec.shape.rank() > kLargestRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("makes a tensor of ", spec.shape.rank(), " axes, more than ", kLargestRank));
    }
    int64_t elements = 1;
    for (const int64_t dim : spec.shape) {
      if (dim > kLargestDim || (dim > 0 && elements > kLargestDim / dim)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "makes a tensor of shape ", spec.shape.ToString(), ", which is too large"));
      }
      if (dim > 0) elements *= dim;
    }
  }
  return result;
}

}  // namespace mu
