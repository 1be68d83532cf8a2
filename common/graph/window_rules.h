// How many windows slide over an axis; shared by shape functions and kernels.
#pragma once

#include <cstdint>

namespace mu {

// With padding "same" as many as there are strides, rounded up; with "valid" those that lie inside.
// -1 if `input` is not known.
inline int64_t WindowCount(int64_t input, int64_t size, int64_t stride, bool same) {
  if (input < 0) return -1;
  if (same) return (input + stride - 1) / stride;
  return input < size ? 0 : (input - size) / stride + 1;
}

}  // namespace mu
