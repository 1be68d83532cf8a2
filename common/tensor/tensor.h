// A dense array in row-major order, 64-byte aligned. Copies share the buffer (like a shared_ptr);
// not synchronised.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace mu {

class Tensor {
 public:
  Tensor() = default;                // empty: dtype invalid, no elements
  Tensor(DType dtype, Shape shape);  // contents are not initialised
  // A view of memory that `owner` keeps alive.
  Tensor(DType dtype, Shape shape, std::shared_ptr<void> owner, void* data)
      : dtype_(dtype), shape_(std::move(shape)), owner_(std::move(owner)), data_(data) {}

  template <typename T>
  static Tensor Scalar(T value) {
    Tensor t(DTypeOf<T>::value, Shape());
    *t.data<T>() = value;
    return t;
  }
  template <typename T>
  static Tensor Of(Shape shape, absl::Span<const T> values) {
    Tensor t(DTypeOf<T>::value, std::move(shape));
    MU_CHECK(static_cast<size_t>(t.elements()) == values.size());
    std::copy(values.begin(), values.end(), t.data<T>());
    return t;
  }

  // INVALID_ARGUMENT if type, sizes and bytes do not agree.
  static absl::StatusOr<Tensor> FromProto(const muster::TensorProto& proto);
  muster::TensorProto ToProto() const;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return dtype_ == muster::DTYPE_INVALID ? 0 : shape_.elements(); }
  size_t bytes() const { return static_cast<size_t>(elements()) * ElementSize(dtype_); }
  bool empty() const { return elements() == 0; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  template <typename T>
  T* data() {
    MU_CHECK(DTypeOf<T>::value == dtype_);
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    MU_CHECK(DTypeOf<T>::value == dtype_);
    return static_cast<const T*>(data_);
  }
  template <typename T>
  absl::Span<T> flat() {
    return absl::MakeSpan(data<T>(), elements());
  }
  template <typename T>
  absl::Span<const T> flat() const {
    return absl::MakeConstSpan(data<T>(), elements());
  }

 private:
  DType dtype_ = muster::DTYPE_INVALID;
  Shape shape_;
  std::shared_ptr<void> owner_;
  void* data_ = nullptr;
};

// Named columns of one batch, as a reader makes it and a function's batch_column nodes read it.
struct Batch {
  uint32_t records = 0;
  std::vector<std::string> names;
  std::vector<Tensor> columns;  // parallel to names

  const Tensor* Find(absl::string_view name) const {
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return &columns[i];
    }
    return nullptr;
  }
};

}  // namespace mu
