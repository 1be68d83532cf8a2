// Cross entropies of softmax: logits [..., classes] against probabilities of the same shape, or
// against class numbers [...].
#include "common/exec/kernel_table.h"
#include "common/exec/softmax_rows.h"

namespace mu {
namespace {

Shape WithoutLastAxis(const Shape& shape) {
  Shape shorter;
  for (int i = 0; i + 1 < shape.rank(); ++i) shorter.Append(shape[i]);
  return shorter;
}

// sum of z * (log_sum - x) over the row; a class with z = 0 counts for nothing, also where its
// logit is -infinity.
float DenseLoss(const float* x, const float* z, int64_t n) {
  const float log_sum = LogSumExp(x, n);
  return SumOf(n, [=](int64_t i, __m256i mask) {
    const Packet weight = _mm256_maskload_ps(z + i, mask);
    const Packet loss = _mm256_sub_ps(Constant(log_sum), _mm256_maskload_ps(x + i, mask));
    const Packet none = _mm256_cmp_ps(weight, Constant(0), _CMP_EQ_OQ);
    return Select(none, Constant(0), _mm256_mul_ps(weight, loss));
  });
}

class DenseKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& logits = context.input(0);
    const View& labels = context.input(1);
    if (logits.shape != labels.shape) {
      return absl::InvalidArgumentError(absl::StrCat("logits of shape ", logits.shape.ToString(),
                                                     " but labels of shape ",
                                                     labels.shape.ToString()));
    }
    const Rows rows = RowsOf(logits.shape);
    const float* x = logits.as<float>();
    const float* z = labels.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, WithoutLastAxis(logits.shape)));
    for (int64_t row = 0; row < rows.count; ++row, x += rows.width, z += rows.width) {
      out[row] = DenseLoss(x, z, rows.width);
    }
    return absl::OkStatus();
  }
};

template <typename I>
absl::Status CheckLabels(const View& logits, const View& labels) {
  if (WithoutLastAxis(logits.shape) != labels.shape) {
    return absl::InvalidArgumentError(absl::StrCat("logits of shape ", logits.shape.ToString(),
                                                   " but labels of shape ",
                                                   labels.shape.ToString()));
  }
  const int64_t classes = logits.shape[logits.shape.rank() - 1];
  const I* const label = labels.as<I>();
  for (int64_t i = 0; i < labels.elements(); ++i) {
    if (label[i] < 0 || label[i] >= classes) {
      return absl::OutOfRangeError(absl::StrCat("label ", label[i], " (number ", i, " of ",
                                                labels.elements(), ") is not below the ", classes,
                                                " classes of the logits"));
    }
  }
  return absl::OkStatus();
}

template <typename I>
class SparseKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& logits = context.input(0);
    const View& labels = context.input(1);
    MU_RETURN_IF_ERROR(CheckLabels<I>(logits, labels));
    const Rows rows = RowsOf(logits.shape);
    const float* x = logits.as<float>();
    const I* const label = labels.as<I>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, labels.shape));
    for (int64_t row = 0; row < rows.count; ++row, x += rows.width) {
      out[row] = LogSumExp(x, rows.width) - x[label[row]];
    }
    return absl::OkStatus();
  }
};

// dy * (softmax(logits) - one_hot(labels))
template <typename I>
class SparseGradKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& dy = context.input(0);
    const View& logits = context.input(1);
    const View& labels = context.input(2);
    MU_RETURN_IF_ERROR(CheckLabels<I>(logits, labels));
    if (dy.shape != labels.shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "dy of shape ", dy.shape.ToString(), " but labels of shape ", labels.shape.ToString()));
    }
    const Rows rows = RowsOf(logits.shape);
    const float* x = logits.as<float>();
    const float* const scale = dy.as<float>();
    const I* const label = labels.as<I>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, logits.shape));
    for (int64_t row = 0; row < rows.count; ++row, x += rows.width, out += rows.width) {
      ScaledSoftmax(x, rows.width, scale[row], out);
      out[label[row]] -= scale[row];
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int input) const override { return input == 1; }
};

absl::StatusOr<KernelPtr> MakeDense(const NodeSpec&) { return KernelPtr(new DenseKernel()); }

template <template <typename> class K, int labels>
absl::StatusOr<KernelPtr> MakeSparse(const NodeSpec& spec) {
  if (spec.inputs[labels].dtype == kInt32) return KernelPtr(new K<int32_t>());
  return KernelPtr(new K<int64_t>());
}

}  // namespace

void RegisterCrossEntropyKernels(KernelTable& table) {
  table.Add("softmax_cross_entropy", MakeDense);
  table.Add("sparse_softmax_cross_entropy", MakeSparse<SparseKernel, 1>);
  table.Add("sparse_softmax_cross_entropy_grad", MakeSparse<SparseGradKernel, 2>);
}

}  // namespace mu
