// Tensors as plain vectors of doubles, and walks over their indices: what plain loops are written
// with.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "common/base/hash.h"
#include "common/exec/kernel.h"
#include "common/tensor/tensor.h"

namespace mu::testing {

using Index = std::vector<int64_t>;

struct Dense {
  DType dtype = kFloat32;
  Index shape;
  std::vector<double> values;

  int64_t elements() const {
    int64_t n = 1;
    for (const int64_t dim : shape) n *= dim;
    return n;
  }
  static Dense Zeros(DType dtype, Index shape) {
    Dense dense{dtype, std::move(shape), {}};
    dense.values.assign(dense.elements(), 0.0);
    return dense;
  }
  int64_t Offset(const Index& index) const {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset = offset * shape[i] + index[i];
    return offset;
  }
  double& at(const Index& index) { return values[Offset(index)]; }
  double at(const Index& index) const { return values[Offset(index)]; }
};

// Calls f(index) for every index of `shape`, in row-major order.
template <typename F>
void ForEachIndex(const Index& shape, F&& f) {
  for (const int64_t dim : shape) {
    if (dim == 0) return;
  }
  Index index(shape.size(), 0);
  while (true) {
    f(static_cast<const Index&>(index));
    int axis = static_cast<int>(shape.size()) - 1;
    for (; axis >= 0; --axis) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

// The index that numpy reads of an operand of shape `from` for `index` of the result.
inline Index Broadcasted(const Index& index, const Index& from) {
  Index result(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    result[i] = from[i] == 1 ? 0 : index[index.size() - from.size() + i];
  }
  return result;
}

inline Dense ToDense(const Tensor& tensor) {
  Dense dense{tensor.dtype(), Index(tensor.shape().begin(), tensor.shape().end()), {}};
  WithType(tensor.dtype(), [&](auto zero) {
    for (const auto value : tensor.flat<decltype(zero)>())
      dense.values.push_back(static_cast<double>(value));
  });
  return dense;
}

inline Tensor ToTensor(const Dense& dense) {
  Tensor tensor(dense.dtype, Shape(dense.shape));
  WithType(dense.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < dense.values.size(); ++i)
      tensor.data<T>()[i] = static_cast<T>(dense.values[i]);
  });
  return tensor;
}

// Random contents: floats in (-2, 2), integers in [-50, 50], bytes in [0, 200], bools.
inline Dense RandomDense(SplitMix& random, DType dtype, Index shape) {
  Dense dense = Dense::Zeros(dtype, std::move(shape));
  for (double& value : dense.values) {
    switch (dtype) {
      case kFloat32:
        value = static_cast<float>(4 * random.Unit() - 2);
        break;
      case kUInt8:
        value = static_cast<double>(random.Below(201));
        break;
      case kBool:
        value = static_cast<double>(random.Below(2));
        break;
      default:
        value = static_cast<double>(random.Below(101)) - 50;
    }
  }
  return dense;
}

}  // namespace mu::testing
