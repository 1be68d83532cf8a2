// softmax, log_softmax and logsumexp over the last axis. Each shifts a row by its largest element,
// so that no exp overflows.
#include "common/exec/kernel_table.h"
#include "common/exec/softmax_rows.h"

namespace mu {
namespace {

class SoftmaxKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Rows rows = RowsOf(x.shape);
    const float* in = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, x.shape));
    if (x.elements() == 0) return absl::OkStatus();  // however many empty rows there are
    for (int64_t row = 0; row < rows.count; ++row, in += rows.width, out += rows.width) {
      ScaledSoftmax(in, rows.width, 1.0f, out);
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }
};

class LogSoftmaxKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Rows rows = RowsOf(x.shape);
    const float* in = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, x.shape));
    if (x.elements() == 0) return absl::OkStatus();  // however many empty rows there are
    for (int64_t row = 0; row < rows.count; ++row, in += rows.width, out += rows.width) {
      const float max = RowMax(in, rows.width);
      const float log_sum = LogOf(SumExp(in, rows.width, max));
      MU_INDEPENDENT
      for (int64_t i = 0; i < rows.width; ++i) out[i] = in[i] - max - log_sum;
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }
};

class LogSumExpKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const Rows rows = RowsOf(x.shape);
    const float* in = x.as<float>();
    Shape shape;
    for (int i = 0; i + 1 < x.shape.rank(); ++i) shape.Append(x.shape[i]);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, shape));
    for (int64_t row = 0; row < rows.count; ++row, in += rows.width) {
      out[row] = LogSumExp(in, rows.width);
    }
    return absl::OkStatus();
  }
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec&) {
  return KernelPtr(new K());
}

}  // namespace

void RegisterSoftmaxKernels(KernelTable& table) {
  table.Add("softmax", Make<SoftmaxKernel>);
  table.Add("log_softmax", Make<LogSoftmaxKernel>);
  table.Add("logsumexp", Make<LogSumExpKernel>);
}

}  // namespace mu
