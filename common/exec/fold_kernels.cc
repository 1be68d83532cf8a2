// Reductions other than sums: the largest, the smallest, products, any and all.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/loops.h"
#include "common/exec/reduced_axes.h"

namespace mu {
namespace {

template <typename T>
constexpr T Smallest() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::min();
}
template <typename T>
constexpr T Largest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

struct Max {
  template <typename T>
  static constexpr T Start() {
    return Smallest<T>();
  }
  template <typename T>
  static T Apply(T a, T b) {
    return a > b || a != a ? a : b;  // NaN if either is NaN
  }
};
struct Min {
  template <typename T>
  static constexpr T Start() {
    return Largest<T>();
  }
  template <typename T>
  static T Apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};
struct Product {
  template <typename T>
  static constexpr T Start() {
    return T(1);
  }
  template <typename T>
  static T Apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};
struct Any {
  template <typename T>
  static constexpr T Start() {
    return false;
  }
  static bool Apply(bool a, bool b) { return a | b; }
};
struct All {
  template <typename T>
  static constexpr T Start() {
    return true;
  }
  static bool Apply(bool a, bool b) { return a & b; }
};

// Over lanes, so that the compiler can use vectors: the order depends on n only.
template <typename Op, typename T>
T FoldRow(const T* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  T lanes[kLanes];
  std::fill(lanes, lanes + kLanes, Op::template Start<T>());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    MU_UNROLL
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] = Op::Apply(lanes[k], x[i + k]);
  }
  for (int64_t k = 0; i < n; ++i, ++k) lanes[k] = Op::Apply(lanes[k], x[i]);
  for (int64_t k = 1; k < kLanes; ++k) lanes[0] = Op::Apply(lanes[0], lanes[k]);
  return lanes[0];
}

template <typename Op, typename T>
class FoldKernel : public Kernel {
 public:
  explicit FoldKernel(ReducedAxes axes) : axes_(std::move(axes)) {}

  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const ReducedAxes::Shapes shapes = axes_.Of(x.shape);
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, shapes.out));
    std::fill(out, out + shapes.out.elements(), Op::template Start<T>());
    if (x.elements() == 0) return absl::OkStatus();
    MU_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(x.shape, shapes.kept));
    const int inner = plan.rank - 1;
    const int64_t n = plan.size[inner];
    const T* const in = x.as<T>();
    ForEachInnerRow(plan, [&](int64_t, int64_t a, int64_t b) {
      if (plan.stride_b[inner] == 0) {
        out[b] = Op::Apply(out[b], FoldRow<Op>(in + a, n));
      } else {
        for (int64_t i = 0; i < n; ++i) out[b + i] = Op::Apply(out[b + i], in[a + i]);
      }
    });
    return absl::OkStatus();
  }

 private:
  const ReducedAxes axes_;
};

template <typename Op, typename Types>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  const ReducedAxes axes(spec.attrs.Ints("axes"), spec.inputs[0].shape.rank(),
                         spec.attrs.Bool("keep_dims"));
  return DispatchType(Types(), spec.inputs[0].dtype, spec, [&axes](auto zero) {
    return KernelPtr(new FoldKernel<Op, decltype(zero)>(axes));
  });
}

}  // namespace

void RegisterFoldKernels(KernelTable& table) {
  table.Add("reduce_max", Make<Max, NumericTypes>);
  table.Add("reduce_min", Make<Min, NumericTypes>);
  table.Add("reduce_prod", Make<Product, NumericTypes>);
  table.Add("reduce_any", Make<Any, TypeList<bool>>);
  table.Add("reduce_all", Make<All, TypeList<bool>>);
}

}  // namespace mu
