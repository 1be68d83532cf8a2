// Arithmetic of ids: division, remainder, hashing.
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/exec/binary_kernel.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

// The divisor is not 0. The smallest value divided by -1 wraps around to itself.
struct FloorDivide {
  template <typename T>
  static T Apply(T a, T b) {
    using U = std::make_unsigned_t<T>;
    if (b == -1) return static_cast<T>(-static_cast<U>(a));
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
};
struct Modulo {
  template <typename T>
  static T Apply(T a, T b) {
    if (b == -1) return 0;
    const T rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};

template <typename Op, typename T>
class DivisionKernel : public BinaryKernel<Op, T, T> {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& divisor = context.input(1);
    const T* const values = divisor.as<T>();
    bool zero = false;
    for (int64_t i = 0; i < divisor.elements(); ++i) zero |= values[i] == 0;
    if (zero) return absl::InvalidArgumentError("a division by 0");
    return BinaryKernel<Op, T, T>::Run(context);
  }
};

template <typename T>
class HashBucketKernel : public Kernel {
 public:
  HashBucketKernel(uint64_t buckets, uint64_t seed) : buckets_(buckets), seed_(seed) {}
  absl::Status Run(KernelContext& context) const override {
    const View& ids = context.input(0);
    const T* const in = ids.as<T>();
    const int64_t n = ids.elements();
    MU_ASSIGN_OR_RETURN(int64_t* const out, context.Output<int64_t>(0, ids.shape));
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t hash = HashCombine(seed_, static_cast<uint64_t>(int64_t{in[i]}));
      out[i] = static_cast<int64_t>((static_cast<unsigned __int128>(hash) * buckets_) >> 64);
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return sizeof(T) == sizeof(int64_t); }

 private:
  const uint64_t buckets_;
  const uint64_t seed_;
};

template <typename Op>
absl::StatusOr<KernelPtr> MakeDivision(const NodeSpec& spec) {
  return DispatchType(IndexTypes(), spec.inputs[0].dtype, spec, [](auto zero) {
    return KernelPtr(new DivisionKernel<Op, decltype(zero)>());
  });
}

absl::StatusOr<KernelPtr> MakeHashBucket(const NodeSpec& spec) {
  const uint64_t buckets = static_cast<uint64_t>(spec.attrs.Int("buckets"));
  const uint64_t seed = static_cast<uint64_t>(spec.attrs.Int("seed"));
  return DispatchType(IndexTypes(), spec.inputs[0].dtype, spec, [buckets, seed](auto zero) {
    return KernelPtr(new HashBucketKernel<decltype(zero)>(buckets, seed));
  });
}

}  // namespace

void RegisterIntegerKernels(KernelTable& table) {
  table.Add("floor_divide", MakeDivision<FloorDivide>);
  table.Add("modulo", MakeDivision<Modulo>);
  table.Add("hash_bucket", MakeHashBucket);
}

}  // namespace mu
