// Elementwise kernels of one input that need no special functions, and cast.
#include <cmath>
#include <limits>
#include <type_traits>

#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

struct Negate {
  static float Apply(float x) { return -x; }
  static int32_t Apply(int32_t x) { return static_cast<int32_t>(-static_cast<uint32_t>(x)); }
  static int64_t Apply(int64_t x) { return static_cast<int64_t>(-static_cast<uint64_t>(x)); }
};
struct Abs {
  static float Apply(float x) { return std::fabs(x); }
  static int32_t Apply(int32_t x) { return x < 0 ? Negate::Apply(x) : x; }
  static int64_t Apply(int64_t x) { return x < 0 ? Negate::Apply(x) : x; }
};
struct Sign {
  template <typename T>
  static T Apply(T x) {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
};
struct Floor {
  static float Apply(float x) { return std::floor(x); }
};
struct Ceil {
  static float Apply(float x) { return std::ceil(x); }
};
struct Round {
  static float Apply(float x) { return std::nearbyint(x); }  // the mode is to nearest, ties to even
};
struct Relu {
  static float Apply(float x) { return x < 0 ? 0.0f : x; }  // NaN stays NaN
};
struct Square {
  static float Apply(float x) { return x * x; }
};
struct Sqrt {
  static float Apply(float x) { return std::sqrt(x); }
};

// Float to integer: towards zero, saturating, NaN is 0. Integer to integer: wraps. To bool: != 0.
template <typename To, typename From>
To Convert(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    // Both bounds are exact in double, the upper one being one above the largest value.
    constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double kHigh = 2.0 * static_cast<double>(std::numeric_limits<To>::max() / 2 + 1);
    const double wide = static_cast<double>(x);
    if (wide != wide) return To(0);
    if (wide <= kLow) return std::numeric_limits<To>::min();
    if (wide >= kHigh) return std::numeric_limits<To>::max();
    return static_cast<To>(wide);
  } else {
    return static_cast<To>(x);
  }
}

template <typename To>
struct Cast {
  template <typename From>
  static To Apply(From x) {
    return Convert<To>(x);
  }
};

template <typename Op, typename T, typename R>
class UnaryKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int64_t n = x.elements();
    const T* const in = x.as<T>();
    MU_ASSIGN_OR_RETURN(R* const out, context.Output<R>(0, x.shape));
    if constexpr (sizeof(T) == sizeof(R)) {
      // The output may be the input's memory. Without this hint the compiler would have to assume
      // any overlap.
      MU_INDEPENDENT
      for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(in[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(in[i]);
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return std::is_same_v<T, R>; }
};

// stop_gradient, and a cast to the type that the input has.
class IdentityKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    context.Alias(0, 0, context.input(0).shape);
    return absl::OkStatus();
  }
  bool MayAlias() const override { return true; }
};

template <typename Op>
absl::StatusOr<KernelPtr> MakeFloat(const NodeSpec& spec) {
  return DispatchType(FloatTypes(), spec.inputs[0].dtype, spec,
                      [](float) { return KernelPtr(new UnaryKernel<Op, float, float>()); });
}

template <typename Op>
absl::StatusOr<KernelPtr> MakeNumeric(const NodeSpec& spec) {
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [](auto zero) {
    using T = decltype(zero);
    return KernelPtr(new UnaryKernel<Op, T, T>());
  });
}

absl::StatusOr<KernelPtr> MakeCast(const NodeSpec& spec) {
  const DType to = spec.outputs[0].dtype;
  if (to == spec.inputs[0].dtype) return KernelPtr(new IdentityKernel());
  return DispatchType(AllTypes(), spec.inputs[0].dtype, spec, [to](auto from_zero) {
    using From = decltype(from_zero);
    KernelPtr kernel;
    WithType(to, [&kernel](auto to_zero) {
      using To = decltype(to_zero);
      kernel.reset(new UnaryKernel<Cast<To>, From, To>());
    });
    return kernel;
  });
}

absl::StatusOr<KernelPtr> MakeIdentity(const NodeSpec&) { return KernelPtr(new IdentityKernel()); }

}  // namespace

void RegisterUnaryKernels(KernelTable& table) {
  table.Add("negate", MakeNumeric<Negate>);
  table.Add("relu", MakeFloat<Relu>);
  table.Add("square", MakeFloat<Square>);
  table.Add("sqrt", MakeFloat<Sqrt>);
  table.Add("cast", MakeCast);
  table.Add("abs", MakeNumeric<Abs>);
  table.Add("sign", MakeNumeric<Sign>);
  table.Add("floor", MakeFloat<Floor>);
  table.Add("ceil", MakeFloat<Ceil>);
  table.Add("round", MakeFloat<Round>);
  table.Add("stop_gradient", MakeIdentity);
}

}  // namespace mu
