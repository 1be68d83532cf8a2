// Shapes: sizes of axes, outermost first. -1 stands for a size that is not known until run time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "proto/tensor.pb.h"

namespace mu {

inline constexpr int64_t kUnknownDim = -1;

class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(absl::Span<const int64_t> dims) : dims_(dims.begin(), dims.end()) {}
  explicit Shape(const muster::ShapeProto& proto)
      : dims_(proto.dims().begin(), proto.dims().end()) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  auto begin() const { return dims_.begin(); }
  auto end() const { return dims_.end(); }
  void Append(int64_t dim) { dims_.push_back(dim); }

  bool IsFullyKnown() const {
    for (int64_t d : dims_) {
      if (d < 0) return false;
    }
    return true;
  }
  // Product of the sizes; all must be known.
  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }

  // As "[?, 16]".
  std::string ToString() const {
    std::string text = "[";
    for (int i = 0; i < rank(); ++i) {
      if (i > 0) text += ", ";
      text += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
    }
    return text + "]";
  }
  muster::ShapeProto ToProto() const {
    muster::ShapeProto proto;
    for (int64_t d : dims_) proto.add_dims(d);
    return proto;
  }

 private:
  absl::InlinedVector<int64_t, 4> dims_;
};

}  // namespace mu
