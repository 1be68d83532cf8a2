// Kernels that give values another shape or order: reshape, transpose, broadcasting, zeros and
// ones.
#include <algorithm>
#include <cstring>

#include "common/exec/broadcast.h"
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

// reshape, by its attribute.
class ReshapeKernel : public Kernel {
 public:
  explicit ReshapeKernel(Shape shape) : shape_(std::move(shape)) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    Shape shape = shape_;
    int64_t known = 1;
    int wildcard = -1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == kUnknownDim) {
        wildcard = i;
      } else {
        known *= shape[i];
      }
    }
    if (wildcard >= 0) shape[wildcard] = known == 0 ? 0 : x.elements() / known;
    if (shape.elements() != x.elements()) {
      return absl::InvalidArgumentError(absl::StrCat("a tensor of shape ", x.shape.ToString(),
                                                     " cannot become ", shape_.ToString()));
    }
    context.Alias(0, 0, shape);
    return absl::OkStatus();
  }
  bool MayAlias() const override { return true; }

 private:
  const Shape shape_;
};

// expand_dims: an axis of size 1 at each of `axes` of the result; squeeze takes those away.
class AxesKernel : public Kernel {
 public:
  AxesKernel(absl::Span<const int64_t> axes, bool adds)
      : axes_(axes.begin(), axes.end()), adds_(adds) {}
  absl::Status Run(KernelContext& context) const override {
    const Shape& x = context.input(0).shape;
    const int longer = x.rank() + (adds_ ? static_cast<int>(axes_.size()) : 0);
    Shape shape;
    for (int i = 0, next = 0; i < longer; ++i) {
      const bool listed = std::find(axes_.begin(), axes_.end(), i) != axes_.end();
      if (adds_) {
        shape.Append(listed ? 1 : x[next++]);
      } else if (!listed) {
        shape.Append(x[i]);
      } else if (x[i] != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("axis ", i, " of a tensor of shape ", x.ToString(), " has not size 1"));
      }
    }
    context.Alias(0, 0, shape);
    return absl::OkStatus();
  }
  bool MayAlias() const override { return true; }

 private:
  const std::vector<int64_t> axes_;
  const bool adds_;
};

class ReshapeLikeKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const Shape& from = context.input(0).shape;
    const Shape& like = context.input(1).shape;
    if (from.elements() != like.elements()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of shape ", from.ToString(), " cannot become ", like.ToString()));
    }
    context.Alias(0, 0, like);
    return absl::OkStatus();
  }
  bool MayAlias() const override { return true; }
  bool ReadsElements(int input) const override { return input == 0; }
};

template <typename T>
class TransposeKernel : public Kernel {
 public:
  explicit TransposeKernel(absl::Span<const int64_t> perm) : perm_(perm.begin(), perm.end()) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int rank = x.shape.rank();
    int64_t strides[kMaxBroadcastAxes];  // of the input
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[i] = step;
      step *= x.shape[i];
    }
    Shape shape;
    int64_t size[kMaxBroadcastAxes],
        stride[kMaxBroadcastAxes];  // of the output's axes, neighbours merged
    int count = 0;
    for (int i = 0; i < rank; ++i) {
      const int64_t n = x.shape[perm_[i]];
      const int64_t s = strides[perm_[i]];
      shape.Append(n);
      if (n == 1) continue;
      if (count > 0 && stride[count - 1] == s * n) {
        size[count - 1] *= n;
        stride[count - 1] = s;
      } else {
        size[count] = n;
        stride[count++] = s;
      }
    }
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, shape));
    if (shape.elements() > 0) CopyAxis(x.as<T>(), out, size, stride, count);
    return absl::OkStatus();
  }

 private:
  static T* CopyAxis(const T* from, T* to, const int64_t* size, const int64_t* stride, int rank) {
    if (rank == 0) {
      *to = *from;
      return to + 1;
    }
    if (rank == 1 && stride[0] == 1) {
      std::memcpy(to, from, size[0] * sizeof(T));
      return to + size[0];
    }
    if (rank == 1) {
      for (int64_t i = 0; i < size[0]; ++i) to[i] = from[i * stride[0]];
      return to + size[0];
    }
    if (rank == 2 && stride[0] == 1) return CopyMatrix(from, to, size, stride);
    for (int64_t i = 0; i < size[0]; ++i)
      to = CopyAxis(from + i * stride[0], to, size + 1, stride + 1, rank - 1);
    return to;
  }
  // A matrix in blocks, so that the lines of cache it reads are still there for the next column.
  static T* CopyMatrix(const T* from, T* to, const int64_t* size, const int64_t* stride) {
    constexpr int64_t kBlock = 16;
    for (int64_t i = 0; i < size[0]; i += kBlock) {
      for (int64_t j = 0; j < size[1]; j += kBlock) {
        const int64_t end_i = std::min(i + kBlock, size[0]);
        const int64_t end_j = std::min(j + kBlock, size[1]);
        for (int64_t ii = i; ii < end_i; ++ii) {
          for (int64_t jj = j; jj < end_j; ++jj) to[ii * size[1] + jj] = from[ii + jj * stride[1]];
        }
      }
    }
    return to + size[0] * size[1];
  }

  const std::vector<int64_t> perm_;
};

// x gets an axis of size 1 at each of `axes` of the output, then is repeated along all axes where
// it has size 1.
template <typename T>
class BroadcastLikeKernel : public Kernel {
 public:
  BroadcastLikeKernel(absl::Span<const int64_t> axes, bool may_be_same)
      : axes_(axes.begin(), axes.end()), may_be_same_(may_be_same) {}
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Shape& like = context.input(1).shape;
    if (may_be_same_ && x.shape == like) {
      context.Alias(0, 0, like);
      return absl::OkStatus();
    }
    Shape widened;
    const int rank = axes_.empty() ? x.shape.rank() : like.rank();
    for (int i = 0, next = 0; i < rank; ++i) {
      const bool added = std::find(axes_.begin(), axes_.end(), i) != axes_.end();
      widened.Append(added ? 1 : x.shape[next++]);
    }
    MU_ASSIGN_OR_RETURN(const BroadcastPlan plan, PlanBroadcast(like, widened));
    if (plan.out != like) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape ", x.shape.ToString(), " cannot be broadcast to ", like.ToString()));
    }
    const T* const from = x.as<T>();
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, like));
    const int inner = plan.rank - 1;
    const int64_t n = plan.size[inner];
    ForEachInnerRow(plan, [&](int64_t to, int64_t, int64_t b) {
      if (plan.stride_b[inner] == 0) {
        std::fill(out + to, out + to + n, from[b]);
      } else {
        std::memcpy(out + to, from + b, n * sizeof(T));
      }
    });
    return absl::OkStatus();
  }
  bool MayAlias() const override { return may_be_same_; }
  bool ReadsElements(int input) const override { return input == 0; }

 private:
  const std::vector<int64_t> axes_;
  const bool may_be_same_;
};

template <typename T>
class FillKernel : public Kernel {
 public:
  explicit FillKernel(T value) : value_(value) {}
  absl::Status Run(KernelContext& context) const override {
    const Shape& shape = context.input(0).shape;
    MU_ASSIGN_OR_RETURN(T* const out, context.Output<T>(0, shape));
    std::fill(out, out + shape.elements(), value_);
    return absl::OkStatus();
  }
  bool ReadsElements(int) const override { return false; }

 private:
  const T value_;
};

absl::StatusOr<KernelPtr> MakeReshape(const NodeSpec& spec) {
  return KernelPtr(new ReshapeKernel(spec.attrs.GetShape("shape")));
}

absl::StatusOr<KernelPtr> MakeReshapeLike(const NodeSpec&) {
  return KernelPtr(new ReshapeLikeKernel());
}

template <bool adds>
absl::StatusOr<KernelPtr> MakeAxes(const NodeSpec& spec) {
  return KernelPtr(new AxesKernel(spec.attrs.Ints("axes"), adds));
}

absl::StatusOr<KernelPtr> MakeTranspose(const NodeSpec& spec) {
  const auto perm = spec.attrs.Ints("perm");
  return DispatchSize(spec.inputs[0].dtype, spec, [perm](auto zero) {
    return KernelPtr(new TransposeKernel<decltype(zero)>(perm));
  });
}

absl::StatusOr<KernelPtr> MakeBroadcastLike(const NodeSpec& spec) {
  const auto axes = spec.attrs.Ints("axes");
  const bool may_be_same = axes.empty() && spec.inputs[0].shape == spec.inputs[1].shape;
  return DispatchSize(spec.inputs[0].dtype, spec, [&](auto zero) {
    return KernelPtr(new BroadcastLikeKernel<decltype(zero)>(axes, may_be_same));
  });
}

template <int value>
absl::StatusOr<KernelPtr> MakeFill(const NodeSpec& spec) {
  return DispatchType(NumericTypes(), spec.outputs[0].dtype, spec, [](auto zero) {
    using T = decltype(zero);
    return KernelPtr(new FillKernel<T>(static_cast<T>(value)));
  });
}

}  // namespace

void RegisterLayoutKernels(KernelTable& table) {
  table.Add("reshape", MakeReshape);
  table.Add("reshape_like", MakeReshapeLike);
  table.Add("expand_dims", MakeAxes<true>);
  table.Add("squeeze", MakeAxes<false>);
  table.Add("transpose", MakeTranspose);
  table.Add("broadcast_like", MakeBroadcastLike);
  table.Add("zeros_like", MakeFill<0>);
  table.Add("ones_like", MakeFill<1>);
}

}  // namespace mu
