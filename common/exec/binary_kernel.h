// The kernel of elementwise ops of two inputs, with broadcasting. Only for the .cc files of
// kernels.
#pragma once

#include "common/exec/broadcast.h"
#include "common/exec/kernel.h"
#include "common/exec/loops.h"

namespace mu {

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

// Op::Apply(T, T) gives an R.
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

}  // namespace mu
