// Comparisons, logic and where.
#include "common/exec/binary_kernel.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

struct Greater {
  template <typename T>
  static bool Apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <typename T>
  static bool Apply(T a, T b) {
    return a >= b;
  }
};
struct Less {
  template <typename T>
  static bool Apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <typename T>
  static bool Apply(T a, T b) {
    return a <= b;
  }
};
struct Equal {
  template <typename T>
  static bool Apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <typename T>
  static bool Apply(T a, T b) {
    return a != b;
  }
};
struct And {
  static bool Apply(bool a, bool b) { return a & b; }
};
struct Or {
  static bool Apply(bool a, bool b) { return a | b; }
};

class NotKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int64_t n = x.elements();
    const bool* const in = x.as<bool>();
    MU_ASSIGN_OR_RETURN(bool* const out, context.Output<bool>(0, x.shape));
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = !in[i];
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }
};

// How an operand is walked while the result is in row-major order: elements to go on by for each
// step along an axis of the result, 0 where the operand is repeated.
struct Strides {
  Strides(const Shape& operand, const Shape& out) {
    int64_t step = 1;
    const int skipped = out.rank() - operand.rank();
    for (int i = out.rank() - 1; i >= skipped; --i) {
      const int64_t size = operand[i - skipped];
      at[i] = size == 1 ? 0 : step;
      step *= size;
    }
  }
  int64_t at[kMaxBroadcastAxes] = {};
};

template <typename T>
class WhereKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& condition = context.input(0);
    const View& a = context.input(1);
    const View& b = context.input(2);
    MU_ASSIGN_OR_RETURN(const BroadcastPlan values, PlanBroadcast(a.shape, b.shape));
    MU_ASSIGN_OR_RETURN(const BroadcastPlan all, PlanBroadcast(condition.shape, values.out));
    const Shape& shape = all.out;
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, shape));
    const bool* const c = condition.as<bool>();
    const auto step = [&shape](const View& view) {  // for operands that are walked as one row
      return view.shape == shape ? 1 : view.elements() == 1 ? 0 : -1;
    };
    const int64_t sc = step(condition), sa = step(a), sb = step(b);
    if (sc >= 0 && sa >= 0 && sb >= 0) {
      Row(c, sc, a.as<T>(), sa, b.as<T>(), sb, out, shape.elements());
    } else if (shape.elements() > 0) {
      Rows(shape, condition, a, b, out);
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int input) const override { return input > 0; }

 private:
  static void Row(const bool* c, int64_t sc, const T* a, int64_t sa, const T* b, int64_t sb, T* out,
                  int64_t n) {
    MU_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) {
      const T x = a[i * sa], y = b[i * sb];
      out[i] = c[i * sc] ? x : y;
    }
  }

  static void Rows(const Shape& shape, const View& condition, const View& a, const View& b,
                   T* out) {
    const Strides sc(condition.shape, shape), sa(a.shape, shape), sb(b.shape, shape);
    const int last = shape.rank() - 1;
    const int64_t n = shape[last];
    int64_t index[kMaxBroadcastAxes] = {};
    int64_t at_c = 0, at_a = 0, at_b = 0;
    for (int64_t rows = shape.elements() / n; rows > 0; --rows, out += n) {
      Row(condition.as<bool>() + at_c, sc.at[last], a.as<T>() + at_a, sa.at[last], b.as<T>() + at_b,
          sb.at[last], out, n);
      for (int axis = last - 1; axis >= 0; --axis) {
        at_c += sc.at[axis];
        at_a += sa.at[axis];
        at_b += sb.at[axis];
        if (++index[axis] < shape[axis]) break;
        index[axis] = 0;
        at_c -= sc.at[axis] * shape[axis];
        at_a -= sa.at[axis] * shape[axis];
        at_b -= sb.at[axis] * shape[axis];
      }
    }
  }
};

template <typename Op, typename Types>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return DispatchType(Types(), spec.inputs[0].dtype, spec, [](auto zero) {
    return KernelPtr(new BinaryKernel<Op, decltype(zero), bool>());
  });
}

absl::StatusOr<KernelPtr> MakeNot(const NodeSpec&) { return KernelPtr(new NotKernel()); }

absl::StatusOr<KernelPtr> MakeWhere(const NodeSpec& spec) {
  return DispatchSize(spec.inputs[1].dtype, spec,
                      [](auto zero) { return KernelPtr(new WhereKernel<decltype(zero)>()); });
}

}  // namespace

void RegisterComparisonKernels(KernelTable& table) {
  table.Add("greater", Make<Greater, NumericTypes>);
  table.Add("greater_equal", Make<GreaterEqual, NumericTypes>);
  table.Add("less", Make<Less, NumericTypes>);
  table.Add("less_equal", Make<LessEqual, NumericTypes>);
  table.Add("equal", Make<Equal, AllTypes>);
  table.Add("not_equal", Make<NotEqual, AllTypes>);
  table.Add("logical_and", Make<And, TypeList<bool>>);
  table.Add("logical_or", Make<Or, TypeList<bool>>);
  table.Add("logical_not", MakeNot);
  table.Add("where", MakeWhere);
}

}  // namespace mu
