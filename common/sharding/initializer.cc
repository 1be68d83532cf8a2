#include "common/sharding/initializer.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/tensor/dtype.h"

namespace mu {
namespace {

constexpr float kSqrt3 = 1.7320508f;

constexpr uint64_t ColumnBits(uint64_t row_key, uint64_t column) {
  return Mix64(row_key + (column + 1) * kGolden);
}

// [0, 1) from the top 24 bits: exact in a float.
inline float Unit(uint64_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 40)) * (1.0f / 16777216.0f);
}

// The sum of four uniforms of 16 bits, less its mean: an integer of magnitude below 2^17, exact in
// a float.
inline float SumOfFour(uint64_t bits) {
  const int32_t sum =
      static_cast<int32_t>(bits & 0xFFFF) + static_cast<int32_t>((bits >> 16) & 0xFFFF) +
      static_cast<int32_t>((bits >> 32) & 0xFFFF) + static_cast<int32_t>(bits >> 48);
  return static_cast<float>(sum - 2 * 65535);
}

absl::Status NotFinite(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the initializer's ", what, " is not a finite number"));
}

}  // namespace

absl::Status CheckInitializer(const pb::InitializerProto& initializer, DType dtype) {
  switch (initializer.kind_case()) {
    case pb::InitializerProto::kConstant:
      if (!std::isfinite(initializer.constant().value())) return NotFinite("value");
      if (dtype != kFloat32 &&
          initializer.constant().value() != std::floor(initializer.constant().value())) {
        return absl::InvalidArgumentError(
            absl::StrCat("the initial value ", initializer.constant().value(),
                         " is not whole, but the type is ", DTypeName(dtype)));
      }
      if (dtype != kFloat32 && std::fabs(initializer.constant().value()) > 2147483520.0f) {
        return absl::InvalidArgumentError(
            "an initial value of integers must be within 31 bits; assign larger ones");
      }
      return absl::OkStatus();
    case pb::InitializerProto::kUniform:
      if (!std::isfinite(initializer.uniform().low())) return NotFinite("low");
      if (!std::isfinite(initializer.uniform().high())) return NotFinite("high");
      if (!std::isfinite(initializer.uniform().high() - initializer.uniform().low()))
        return NotFinite("range");
      break;
    case pb::InitializerProto::kNormal:
      if (!std::isfinite(initializer.normal().mean())) return NotFinite("mean");
      if (!std::isfinite(initializer.normal().stddev())) return NotFinite("stddev");
      break;
    default:
      return absl::OkStatus();
  }
  if (dtype == kFloat32) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a random initializer needs type float32, not ",
                                                 DTypeName(dtype), "; use a constant"));
}

RowInitializer::RowInitializer(const pb::InitializerProto& proto, const std::string& name)
    : key_(HashCombine(proto.seed(), HashString(name))) {
  switch (proto.kind_case()) {
    case pb::InitializerProto::kConstant:
      a_ = proto.constant().value();
      break;
    case pb::InitializerProto::kUniform:
      kind_ = Kind::kUniform;
      a_ = proto.uniform().low();
      b_ = proto.uniform().high() - proto.uniform().low();
      break;
    case pb::InitializerProto::kNormal:
      kind_ = Kind::kNormal;
      a_ = proto.normal().mean();
      // Four uniforms of width 1 have the variance 1/3 together.
      b_ = proto.normal().stddev() * kSqrt3 * (1.0f / 65536.0f);
      break;
    default:
      break;
  }
}

void RowInitializer::FillRow(uint64_t row, float* out, size_t columns) const {
  const uint64_t row_key = HashCombine(key_, row);
  switch (kind_) {
    case Kind::kConstant:
      std::fill(out, out + columns, a_);
      return;
    case Kind::kUniform:
      for (size_t c = 0; c < columns; ++c) out[c] = a_ + Unit(ColumnBits(row_key, c)) * b_;
      return;
    case Kind::kNormal:
      for (size_t c = 0; c < columns; ++c) out[c] = a_ + SumOfFour(ColumnBits(row_key, c)) * b_;
      return;
  }
}

}  // namespace mu
