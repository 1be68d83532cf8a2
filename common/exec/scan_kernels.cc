// Kernels that look along one axis: argmax and cumsum; and the products of all other elements.
#include <algorithm>
#include <type_traits>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/reduced_axes.h"

namespace mu {
namespace {

// A tensor as [outer, size, inner] around an axis.
struct Around {
  Around(const Shape& shape, int axis) : size(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
  int64_t outer = 1, size, inner = 1;
};

template <typename T>
class ArgmaxKernel : public Kernel {
 public:
  explicit ArgmaxKernel(int axis) : axis_(axis) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Around around(x.shape, axis_);
    if (around.size == 0) return absl::InvalidArgumentError("there is no largest of no elements");
    Shape shape;
    for (int i = 0; i < x.shape.rank(); ++i) {
      if (i != axis_) shape.Append(x.shape[i]);
    }
    MU_ASSIGN_OR_RETURN(int64_t * out, context.Output<int64_t>(0, shape));
    const T* in = x.as<T>();
    for (int64_t o = 0; o < around.outer; ++o) {
      std::fill(out, out + around.inner, 0);
      for (int64_t j = 1; j < around.size; ++j) {
        for (int64_t i = 0; i < around.inner; ++i) {
          const T best = in[out[i] * around.inner + i], next = in[j * around.inner + i];
          if (next > best || (next != next && best == best)) out[i] = j;
        }
      }
      in += around.size * around.inner;
      out += around.inner;
    }
    return absl::OkStatus();
  }

 private:
  const int axis_;
};

template <typename T>
class CumsumKernel : public Kernel {
 public:
  CumsumKernel(int axis, bool exclusive, bool reverse)
      : axis_(axis), exclusive_(exclusive), reverse_(reverse) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Around around(x.shape, axis_);
    MU_ASSIGN_OR_RETURN(T * out, context.Output<T>(0, x.shape));
    const T* in = x.as<T>();
    const int64_t inner = around.inner;
    const int64_t step = reverse_ ? -inner : inner;
    for (int64_t o = 0; o < around.outer; ++o) {
      const int64_t first = reverse_ ? (around.size - 1) * inner : 0;
      for (int64_t j = 0; j < around.size; ++j) {
        const int64_t at = first + j * step;
        for (int64_t i = at; i < at + inner; ++i) {
          const T before = j == 0 ? T(0) : out[i - step];
          out[i] = Plus(before, exclusive_ ? (j == 0 ? T(0) : in[i - step]) : in[i]);
        }
      }
      in += around.size * inner;
      out += around.size * inner;
    }
    return absl::OkStatus();
  }

 private:
  static T Plus(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }

  const int axis_;
  const bool exclusive_;
  const bool reverse_;
};

// By the product of what is not 0 and the number of zeros, in double: it neither divides by 0 nor
// overflows where the result does not.
class ProductsOfOthersKernel : public Kernel {
 public:
  explicit ProductsOfOthersKernel(ReducedAxes axes) : axes_(std::move(axes)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const ReducedAxes::Shapes shapes = axes_.Of(x.shape);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, x.shape));
    if (x.elements() == 0) return absl::OkStatus();
    const size_t groups = static_cast<size_t>(shapes.kept.elements());
    AlignedBuffer* const buffers = context.scratch().buffers;
    double* const product = static_cast<double*>(buffers[0].TryReserve(groups * sizeof(double)));
    int64_t* const zeros = static_cast<int64_t*>(buffers[1].TryReserve(groups * sizeof(int64_t)));
    if (product == nullptr || zeros == nullptr) return NoMemory(shapes.kept);
    std::fill(product, product + groups, 1.0);
    std::fill(zeros, zeros + groups, 0);
    MU_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(x.shape, shapes.kept));
    const int inner = plan.rank - 1;
    const int64_t n = plan.size[inner], step = plan.stride_b[inner];
    const float* const in = x.as<float>();
    ForEachInnerRow(plan, [&](int64_t, int64_t a, int64_t b) {
      for (int64_t i = 0; i < n; ++i) {
        if (in[a + i] == 0) {
          ++zeros[b + i * step];
        } else {
          product[b + i * step] *= in[a + i];
        }
      }
    });
    ForEachInnerRow(plan, [&](int64_t, int64_t a, int64_t b) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t group = b + i * step;
        const int64_t others = zeros[group] - (in[a + i] == 0 ? 1 : 0);
        const double all = in[a + i] == 0 ? product[group] : product[group] / in[a + i];
        out[a + i] = others > 0 ? 0.0f : static_cast<float>(all);
      }
    });
    return absl::OkStatus();
  }

 private:
  const ReducedAxes axes_;
};

absl::StatusOr<KernelPtr> MakeArgmax(const NodeSpec& spec) {
  const int axis = static_cast<int>(spec.attrs.Int("axis"));
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [axis](auto zero) {
    return KernelPtr(new ArgmaxKernel<decltype(zero)>(axis));
  });
}

absl::StatusOr<KernelPtr> MakeCumsum(const NodeSpec& spec) {
  const int axis = static_cast<int>(spec.attrs.Int("axis"));
  const bool exclusive = spec.attrs.Bool("exclusive"), reverse = spec.attrs.Bool("reverse");
  return DispatchType(NumericTypes(), spec.inputs[0].dtype, spec, [&](auto zero) {
    return KernelPtr(new CumsumKernel<decltype(zero)>(axis, exclusive, reverse));
  });
}

absl::StatusOr<KernelPtr> MakeProductsOfOthers(const NodeSpec& spec) {
  return KernelPtr(new ProductsOfOthersKernel(
      ReducedAxes(spec.attrs.Ints("axes"), spec.inputs[0].shape.rank(), false)));
}

}  // namespace

void RegisterScanKernels(KernelTable& table) {
  table.Add("argmax", MakeArgmax);
  table.Add("cumsum", MakeCumsum);
  table.Add("products_of_others", MakeProductsOfOthers);
}

}  // namespace mu
