// Adds one block of numbers to another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/tensor/dtype.h"

namespace mu {

// `bytes` of numbers of this type, in their order. Whole numbers wrap around, as unsigned ones do.
inline void AddElements(muster::DType dtype, const void* from, size_t bytes, void* to) {
  const auto add = [&](auto number) {
    using T = decltype(number);
    const T* const values = static_cast<const T*>(from);
    T* const sums = static_cast<T*>(to);
    for (size_t i = 0; i < bytes / sizeof(T); ++i) sums[i] += values[i];
  };
  switch (dtype) {
    case kFloat32:
      return add(float{});
    case kInt64:
      return add(uint64_t{});
    default:
      return add(uint32_t{});
  }
}

}  // namespace mu
