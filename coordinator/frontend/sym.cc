#include "coordinator/frontend/sym.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/tensor/tensor.h"

namespace mu {
namespace {

// False if the number has no such value of an integer type.
template <typename T>
bool FitsInteger(double number) {
  return number == std::floor(number) && number >= static_cast<double>(std::numeric_limits<T>::min()) &&
         number < std::ldexp(1.0, std::numeric_limits<T>::digits);
}

absl::StatusOr<Tensor> NumberOf(double number, DType dtype) {
  switch (dtype) {
    case kFloat32:
      return Tensor::Scalar<float>(static_cast<float>(number));
    case kInt32:
      if (FitsInteger<int32_t>(number)) return Tensor::Scalar<int32_t>(static_cast<int32_t>(number));
      break;
    case kInt64:
      if (FitsInteger<int64_t>(number)) return Tensor::Scalar<int64_t>(static_cast<int64_t>(number));
      break;
    case kUInt8:
      if (FitsInteger<uint8_t>(number)) return Tensor::Scalar<uint8_t>(static_cast<uint8_t>(number));
      break;
    case kBool:
      if (number == 0 || number == 1) return Tensor::Scalar<bool>(number == 1);
      break;
    default:
      break;
  }
  const absl::string_view name = DTypeName(dtype);
  return absl::InvalidArgumentError(absl::StrCat("the number ", number, " is no ", name));
}

}  // namespace

Sym Operand::Bind(DType like) const {
  if (!number_.has_value() && !is_variable_) return sym_;
  TraceGraph* graph = TraceGraph::Current();
  if (graph == nullptr) return TraceGraph::NoGraph(is_variable_ ? "variable_read" : "constant", place_);
  if (is_variable_) return graph->ReadVariable(variable_, place_);
  const absl::StatusOr<Tensor> value = NumberOf(*number_, like);
  if (!value.ok()) return graph->Fail("constant", value.status(), place_);
  return graph->Add("constant", {}, Attrs().Value("value", value->ToProto()), place_);
}

}  // namespace mu
