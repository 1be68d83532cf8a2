// Element types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "proto/tensor.pb.h"

namespace mu {

using DType = muster::DType;
inline constexpr DType kFloat32 = muster::FLOAT32;
inline constexpr DType kInt32 = muster::INT32;
inline constexpr DType kInt64 = muster::INT64;
inline constexpr DType kUInt8 = muster::UINT8;
inline constexpr DType kBool = muster::BOOL;

// Bytes of one element; 0 for an invalid type.
constexpr size_t ElementSize(DType dtype) {
  switch (dtype) {
    case kFloat32:
    case kInt32:
      return 4;
    case kInt64:
      return 8;
    case kUInt8:
    case kBool:
      return 1;
    default:
      return 0;
  }
}

// "float32", "int32", "int64", "uint8", "bool"; "invalid" for anything else.
constexpr absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return "float32";
    case kInt32:
      return "int32";
    case kInt64:
      return "int64";
    case kUInt8:
      return "uint8";
    case kBool:
      return "bool";
    default:
      return "invalid";
  }
}

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = kFloat32;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = kUInt8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = kBool;
};

}  // namespace mu
