// From a node's element types to the C++ types that its kernel is made for. Every kernel that
// exists for several types is made through one of these.
//
//   return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [](auto zero) {
//     return KernelPtr(new SumKernel<decltype(zero)>());
//   });
#pragma once

#include <utility>

#include "common/exec/kernel.h"

namespace mu {

template <typename... T>
struct TypeList {};

using FloatTypes = TypeList<float>;
using NumericTypes = TypeList<float, int32_t, int64_t>;
using IndexTypes = TypeList<int32_t, int64_t>;
using AllTypes = TypeList<float, int32_t, int64_t, uint8_t, bool>;

// make(T()) with the type of the list that `dtype` is; NoKernel if it is none of them.
template <typename... T, typename Make>
absl::StatusOr<KernelPtr> DispatchType(TypeList<T...>, DType dtype, const NodeSpec& spec,
                                       Make&& make) {
  KernelPtr kernel;
  (void)((dtype == DTypeOf<T>::value && (kernel = make(T()), true)) || ...);
  if (kernel == nullptr) return NoKernel(spec);
  return kernel;
}

// For kernels that only move elements: make(T()) with an unsigned integer of an element's size.
template <typename Make>
absl::StatusOr<KernelPtr> DispatchSize(DType dtype, const NodeSpec& spec, Make&& make) {
  switch (ElementSize(dtype)) {
    case 1:
      return make(uint8_t());
    case 4:
      return make(uint32_t());
    case 8:
      return make(uint64_t());
    default:
      return NoKernel(spec);
  }
}

}  // namespace mu
