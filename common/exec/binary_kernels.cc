// Arithmetic of two inputs, with broadcasting.
#include <cmath>
#include <type_traits>

#include "common/exec/binary_kernel.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

// Integers wrap around, as numpy's do; in C++ only unsigned ones may.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::common_type<T>>;

struct Add {
  template <typename T>
  static T Apply(T a, T b) {
    using U = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
};
struct Subtract {
  template <typename T>
  static T Apply(T a, T b) {
    using U = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
  }
};
struct Multiply {
  template <typename T>
  static T Apply(T a, T b) {
    using U = typename Wrapping<T>::type;
    return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
  }
};
struct Divide {
  template <typename T>
  static T Apply(T a, T b) {
    return a / b;
  }
};
// NaN if either is NaN, as numpy has it.
struct Maximum {
  template <typename T>
  static T Apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  static T Apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Pow {
  static float Apply(float a, float b) { return std::pow(a, b); }
};
struct ReluGrad {
  static float Apply(float dy, float y) { return y > 0 ? dy : 0.0f; }
};

// Its inputs have one shape: a gradient is never broadcast.
class ReluGradKernel : public BinaryKernel<ReluGrad, float, float> {
 public:
  absl::Status Run(KernelContext& context) const override {
    const Shape& dy = context.input(0).shape;
    const Shape& y = context.input(1).shape;
    if (dy != y) {
      return absl::InvalidArgumentError(
          absl::StrCat("dy of shape ", dy.ToString(), " but y of shape ", y.ToString()));
    }
    return BinaryKernel::Run(context);
  }
};

template <typename Op>
absl::StatusOr<KernelPtr> MakeArithmetic(const NodeSpec& spec) {
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [](auto zero) {
    using T = decltype(zero);
    return KernelPtr(new BinaryKernel<Op, T, T>());
  });
}

template <typename Op>
absl::StatusOr<KernelPtr> MakeFloat(const NodeSpec& spec) {
  return DispatchType(FloatTypes(), spec.inputs[0].dtype, spec,
                      [](float) { return KernelPtr(new BinaryKernel<Op, float, float>()); });
}

absl::StatusOr<KernelPtr> MakeReluGrad(const NodeSpec&) { return KernelPtr(new ReluGradKernel()); }

}  // namespace

void RegisterBinaryKernels(KernelTable& table) {
  table.Add("add", MakeArithmetic<Add>);
  table.Add("subtract", MakeArithmetic<Subtract>);
  table.Add("multiply", MakeArithmetic<Multiply>);
  table.Add("divide", MakeFloat<Divide>);
  table.Add("maximum", MakeArithmetic<Maximum>);
  table.Add("minimum", MakeArithmetic<Minimum>);
  table.Add("pow", MakeFloat<Pow>);
  table.Add("relu_grad", MakeReluGrad);
}

}  // namespace mu
