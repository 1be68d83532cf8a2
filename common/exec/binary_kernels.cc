// Elementwise kernels of two inputs, with broadcasting.
#include <type_traits>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

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
struct Greater {
  template <typename T>
  static bool Apply(T a, T b) {
    return a > b;
  }
};
struct Equal {
  template <typename T>
  static bool Apply(T a, T b) {
    return a == b;
  }
};
struct ReluGrad {
  static float Apply(float dy, float y) { return y > 0 ? dy : 0.0f; }
};

// The four ways an inner row is read; strides other than 0 and 1 do not occur in the innermost
// axis.
template <typename Op, typename T, typename R>
void ApplyRow(const T* a, int64_t stride_a, const T* b, int64_t stride_b, R* out, int64_t n) {
  if (stride_a != 0 && stride_b != 0) {
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(a[i], b[i]);
  } else if (stride_a != 0) {
    const T y = *b;
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(a[i], y);
  } else if (stride_b != 0) {
    const T x = *a;
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::Apply(x, b[i]);
  } else {
    const R value = Op::Apply(*a, *b);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  }
}

template <typename Op, typename T, typename R>
class BinaryKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& a = context.input(0);
    const View& b = context.input(1);
    if (a.shape == b.shape) {
      // Read before Output: the views stay as they are, but their memory may become the output.
      const int64_t n = a.elements();
      MU_ASSIGN_OR_RETURN(R* const out, context.Output<R>(0, a.shape));
      ApplyRow<Op>(a.as<T>(), 1, b.as<T>(), 1, out, n);
      return absl::OkStatus();
    }
    MU_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(a.shape, b.shape));
    MU_ASSIGN_OR_RETURN(R* const out, context.Output<R>(0, plan.out));
    const int inner = plan.rank - 1;
    ForEachInnerRow(plan, [&](int64_t to, int64_t from_a, int64_t from_b) {
      ApplyRow<Op>(a.as<T>() + from_a, plan.stride_a[inner], b.as<T>() + from_b,
                   plan.stride_b[inner], out + to, plan.size[inner]);
    });
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return sizeof(T) == sizeof(R); }
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

template <typename Op>
absl::StatusOr<KernelPtr> MakeComparison(const NodeSpec& spec) {
  return DispatchType(AllTypes(), spec.inputs[0].dtype, spec, [](auto zero) {
    return KernelPtr(new BinaryKernel<Op, decltype(zero), bool>());
  });
}

}  // namespace

void RegisterBinaryKernels(KernelTable& table) {
  table.Add("add", MakeArithmetic<Add>);
  table.Add("subtract", MakeArithmetic<Subtract>);
  table.Add("multiply", MakeArithmetic<Multiply>);
  table.Add("divide", MakeFloat<Divide>);
  table.Add("maximum", MakeArithmetic<Maximum>);
  table.Add("minimum", MakeArithmetic<Minimum>);
  table.Add("greater", MakeComparison<Greater>);
  table.Add("equal", MakeComparison<Equal>);
  table.Add("relu_grad", MakeReluGrad);
}

}  // namespace mu
