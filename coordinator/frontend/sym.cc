#include "coordinator/frontend/sym.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/tensor/tensor.h"

namespace mu {
namespace {

// Nothing if the number has no such value of an integer type.
template <typename T>
std::optional<Tensor> IntegerOf(const std::variant<double, int64_t>& number) {
  if (const int64_t* integer = std::get_if<int64_t>(&number)) {
    if (*integer < std::numeric_limits<T>::min() || *integer > std::numeric_limits<T>::max())
      return std::nullopt;
    return Tensor::Scalar<T>(static_cast<T>(*integer));
  }
  const double real = std::get<double>(number);
  const bool fits = real == std::floor(real) &&
                    real >= static_cast<double>(std::numeric_limits<T>::min()) &&
                    real < std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!fits) return std::nullopt;
  return Tensor::Scalar<T>(static_cast<T>(real));
}

absl::StatusOr<Tensor> NumberOf(const std::variant<double, int64_t>& number, DType dtype) {
  const double real = std::visit([](auto value) { return static_cast<double>(value); }, number);
  std::optional<Tensor> tensor;
  switch (dtype) {
    case kFloat32:
      return Tensor::Scalar<float>(static_cast<float>(real));
    case kInt32:
      tensor = IntegerOf<int32_t>(number);
      break;
    case kInt64:
      tensor = IntegerOf<int64_t>(number);
      break;
    case kUInt8:
      tensor = IntegerOf<uint8_t>(number);
      break;
    case kBool:
      if (real == 0 || real == 1) tensor = Tensor::Scalar<bool>(real == 1);
      break;
    default:
      break;
  }
  if (tensor.has_value()) return *std::move(tensor);
  const absl::string_view name = DTypeName(dtype);
  return absl::InvalidArgumentError(absl::StrCat("the number ", real, " is no ", name));
}

}  // namespace

Sym Operand::Bind(DType like) const {
  if (!number_.has_value() && !is_variable_) return sym_;
  TraceGraph* graph = TraceGraph::Current();
  if (graph == nullptr)
    return TraceGraph::NoGraph(is_variable_ ? "variable_read" : "constant", place_);
  if (is_variable_) return graph->ReadVariable(variable_, place_);
  const absl::StatusOr<Tensor> value = NumberOf(*number_, like);
  if (!value.ok()) return graph->Fail("constant", value.status(), place_);
  return graph->Add("constant", {}, Attrs().Value("value", value->ToProto()), place_);
}

}  // namespace mu
