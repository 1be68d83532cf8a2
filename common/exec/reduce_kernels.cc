// Sums over axes. A reduction is broadcasting read backwards: the output takes part with stride 0
// along reduced axes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/reduced_axes.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

template <typename T>
T SumRow(const T* x, int64_t n) {
  std::make_unsigned_t<T> sum = 0;  // integers wrap
  for (int64_t i = 0; i < n; ++i) sum += static_cast<std::make_unsigned_t<T>>(x[i]);
  return static_cast<T>(sum);
}
template <>
float SumRow<float>(const float* x, int64_t n) {
  return Sum(x, n);
}

template <typename T>
T Plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <typename T>
void AddRow(T* y, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = Plus(y[i], x[i]);
}

// out[n] = sum of rows; four rows at a time, added in order, to spare loads and stores of the sums.
template <typename T>
void SumColumns(const T* x, int64_t rows, int64_t n, T* __restrict out) {
  std::fill(out, out + n, T(0));
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const T* const r = x + row * n;
    for (int64_t i = 0; i < n; ++i) {
      out[i] = Plus(Plus(Plus(Plus(out[i], r[i]), r[n + i]), r[2 * n + i]), r[3 * n + i]);
    }
  }
  for (; row < rows; ++row) AddRow(out, x + row * n, n);
}

// Sums `x` of shape `from` down to `to`, which broadcasts to it.
template <typename T>
absl::Status SumTo(const T* x, const Shape& from, const Shape& to, T* out) {
  MU_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(from, to));
  if (plan.out != from) {
    return absl::InvalidArgumentError(
        absl::StrCat("shape ", to.ToString(), " cannot be broadcast to ", from.ToString()));
  }
  const int inner = plan.rank - 1;
  const int64_t n = plan.size[inner];
  if (plan.rank == 2 && plan.stride_b[0] == 0 && plan.stride_b[1] != 0 && plan.size[0] > 0) {
    SumColumns(x, plan.size[0], n, out);
    return absl::OkStatus();
  }
  std::fill(out, out + to.elements(), T(0));
  ForEachInnerRow(plan, [&](int64_t, int64_t a, int64_t b) {
    if (plan.stride_b[inner] == 0) {
      out[b] = Plus(out[b], SumRow(x + a, n));
    } else {
      AddRow(out + b, x + a, n);
    }
  });
  return absl::OkStatus();
}

template <typename T>
class ReduceKernel : public Kernel {
 public:
  ReduceKernel(ReducedAxes axes, bool mean) : axes_(std::move(axes)), mean_(mean) {}

  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const ReducedAxes::Shapes shapes = axes_.Of(x.shape);
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, shapes.out));
    const int64_t n = shapes.out.elements();
    if (x.elements() == 0) {  // broadcasting a size of 1 to 0 reads nothing; sums of nothing are 0
      std::fill(out, out + n, T(0));
      return absl::OkStatus();
    }
    MU_RETURN_IF_ERROR(SumTo(x.as<T>(), x.shape, shapes.kept, out));
    if constexpr (std::is_same_v<T, float>) {
      if (mean_) {
        const float divisor = static_cast<float>(shapes.count);
        for (int64_t i = 0; i < n; ++i) out[i] /= divisor;
      }
    }
    return absl::OkStatus();
  }

 private:
  const ReducedAxes axes_;
  const bool mean_;
};

template <typename T>
class ReduceToLikeKernel : public Kernel {
 public:
  explicit ReduceToLikeKernel(bool may_be_same) : may_be_same_(may_be_same) {}

  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Shape& like = context.input(1).shape;
    if (may_be_same_ && x.shape == like) {
      context.Alias(0, 0, like);
      return absl::OkStatus();
    }
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, like));
    if (x.elements() == 0) {
      std::fill(out, out + like.elements(), T(0));
      return absl::OkStatus();
    }
    return SumTo(x.as<T>(), x.shape, like, out);
  }
  bool MayAlias() const override { return may_be_same_; }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  const bool may_be_same_;
};

class MeanSquaredErrorKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const View& y = context.input(1);
    if (x.shape != y.shape) {
      return absl::InvalidArgumentError(absl::StrCat("predictions of shape ", x.shape.ToString(),
                                                     " but targets of shape ", y.shape.ToString()));
    }
    const float* const a = x.as<float>();
    const float* const b = y.as<float>();
    const int64_t n = x.elements();
    const float sum = SumOf(n, [a, b](int64_t i, __m256i mask) {
      const __m256 d =
          _mm256_sub_ps(_mm256_maskload_ps(a + i, mask), _mm256_maskload_ps(b + i, mask));
      return _mm256_mul_ps(d, d);
    });
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, Shape()));
    *out = n == 0 ? 0.0f : sum / static_cast<float>(n);
    return absl::OkStatus();
  }
};

class SumOfSquaresKernel : public Kernel {
 public:
  explicit SumOfSquaresKernel(bool root) : root_(root) {}

  absl::Status Run(KernelContext& context) const override {
    float sum = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const float* const x = context.in<float>(i);
      sum += Dot(x, x, context.input(i).elements());
    }
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, Shape()));
    *out = !root_ ? sum : std::isfinite(sum) ? std::sqrt(sum) : WideRoot(context);
    return absl::OkStatus();
  }

 private:
  // The squares of a float32 overflow from 1.8e19 on, those of a double do not.
  static float WideRoot(KernelContext& context) {
    double sum = 0;
    for (int i = 0; i < context.num_inputs(); ++i) {
      const float* const x = context.in<float>(i);
      const int64_t n = context.input(i).elements();
      for (int64_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * x[j];
    }
    const double root = std::sqrt(sum);
    return root > std::numeric_limits<float>::max() ? std::numeric_limits<float>::infinity()
                                                    : static_cast<float>(root);
  }

  const bool root_;
};

class CountKernel : public Kernel {
 public:
  CountKernel(absl::Span<const int64_t> axes, int64_t least)
      : axes_(axes.begin(), axes.end()), least_(least) {}
  absl::Status Run(KernelContext& context) const override {
    const Shape& shape = context.input(0).shape;
    int64_t count = 1;
    if (axes_.empty()) count = shape.elements();
    for (const int64_t axis : axes_) count *= shape[axis];
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, Shape()));
    *out = static_cast<float>(std::max(count, least_));
    return absl::OkStatus();
  }
  bool ReadsElements(int) const override { return false; }

 private:
  const std::vector<int64_t> axes_;
  const int64_t least_;
};

template <bool mean>
absl::StatusOr<KernelPtr> MakeReduce(const NodeSpec& spec) {
  const ReducedAxes axes(spec.attrs.Ints("axes"), spec.inputs[0].shape.rank(),
                         spec.attrs.Bool("keep_dims"));
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [&axes](auto zero) {
    return KernelPtr(new ReduceKernel<decltype(zero)>(axes, mean));
  });
}

absl::StatusOr<KernelPtr> MakeReduceToLike(const NodeSpec& spec) {
  const bool may_be_same = spec.inputs[0].shape == spec.inputs[1].shape;
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [may_be_same](auto zero) {
    return KernelPtr(new ReduceToLikeKernel<decltype(zero)>(may_be_same));
  });
}

absl::StatusOr<KernelPtr> MakeMeanSquaredError(const NodeSpec&) {
  return KernelPtr(new MeanSquaredErrorKernel());
}

absl::StatusOr<KernelPtr> MakeSumOfSquares(const NodeSpec& spec) {
  return KernelPtr(new SumOfSquaresKernel(spec.attrs.Bool("root")));
}

absl::StatusOr<KernelPtr> MakeCount(const NodeSpec& spec) {
  return KernelPtr(
      new CountKernel(spec.attrs.Ints("axes"), spec.attrs.Bool("at_least_one") ? 1 : 0));
}

}  // namespace

void RegisterReduceKernels(KernelTable& table) {
  table.Add("reduce_sum", MakeReduce<false>);
  table.Add("reduce_mean", MakeReduce<true>);
  table.Add("reduce_to_like", MakeReduceToLike);
  table.Add("mean_squared_error", MakeMeanSquaredError);
  table.Add("sum_of_squares", MakeSumOfSquares);
  table.Add("count", MakeCount);
}

}  // namespace mu
