// batch_matmul: one product per entry of axis 0.
#include "common/exec/gemm.h"
#include "common/exec/kernel_table.h"
#include "common/exec/small_gemm.h"

namespace mu {
namespace {

class BatchMatmulKernel : public Kernel {
 public:
  BatchMatmulKernel(bool transpose_a, bool transpose_b)
      : transpose_a_(transpose_a), transpose_b_(transpose_b) {}

  absl::Status Run(KernelContext& context) const override {
    const Shape& a = context.input(0).shape;
    const Shape& b = context.input(1).shape;
    const int64_t count = a[0];
    const int64_t m = a[transpose_a_ ? 2 : 1];
    const int64_t k = a[transpose_a_ ? 1 : 2];
    const int64_t n = b[transpose_b_ ? 1 : 2];
    if (b[0] != count || b[transpose_b_ ? 2 : 1] != k) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes do not fit: ", a.ToString(), transpose_a_ ? " (transposed)" : "",
                       " times ", b.ToString(), transpose_b_ ? " (transposed)" : ""));
    }
    const float* x = context.in<float>(0);
    const float* y = context.in<float>(1);
    MU_ASSIGN_OR_RETURN(float* out, context.Output<float>(0, Shape({count, m, n})));
    if (IsSmallProduct(m, n, k)) {
      SmallGemm(transpose_a_, transpose_b_, count, m, n, k, x, y, out,
                context.scratch().buffers[0]);
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < count; ++i, x += m * k, y += k * n, out += m * n) {
      Gemm(transpose_a_, transpose_b_, m, n, k, x, y, out, Epilogue());
    }
    return absl::OkStatus();
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
};

absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(
      new BatchMatmulKernel(spec.attrs.Bool("transpose_a"), spec.attrs.Bool("transpose_b")));
}

}  // namespace

void RegisterBatchMatmulKernels(KernelTable& table) { table.Add("batch_matmul", Make); }

}  // namespace mu
