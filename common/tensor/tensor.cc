#include "common/tensor/tensor.h"

#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/huge_pages.h"

namespace mu {
namespace {

constexpr size_t kAlignment = 64;
constexpr int64_t kMaxElements = int64_t{1} << 40;

std::shared_ptr<void> AllocateAligned(size_t bytes) {
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = AllocateLarge(kAlignment, rounded);
  MU_CHECK(memory != nullptr);
  return std::shared_ptr<void>(memory, std::free);
}

}  // namespace

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {
  MU_CHECK(ElementSize(dtype) > 0 && shape_.IsFullyKnown());
  owner_ = AllocateAligned(bytes());
  data_ = owner_.get();
}

absl::StatusOr<Tensor> Tensor::FromProto(const muster::TensorProto& proto) {
  const size_t element = ElementSize(proto.dtype());
  if (element == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor has the unknown type ", proto.dtype()));
  }
  int64_t elements = 1;
  for (int64_t dim : proto.shape().dims()) {
    if (dim < 0 || (dim > 0 && elements > kMaxElements / dim)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor has the impossible shape ", Shape(proto.shape()).ToString()));
    }
    elements *= dim;
  }
  if (proto.data().size() != elements * element) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", Shape(proto.shape()).ToString(), " and type ",
                     std::string(DTypeName(proto.dtype())), " has ", proto.data().size(),
                     " bytes, not ", elements * element));
  }
  Tensor tensor(proto.dtype(), Shape(proto.shape()));
  std::memcpy(tensor.raw(), proto.data().data(), proto.data().size());
  return tensor;
}

muster::TensorProto Tensor::ToProto() const {
  muster::TensorProto proto;
  proto.set_dtype(dtype_);
  *proto.mutable_shape() = shape_.ToProto();
  proto.set_data(data_ == nullptr ? "" : std::string(static_cast<const char*>(data_), bytes()));
  return proto;
}

}  // namespace mu
