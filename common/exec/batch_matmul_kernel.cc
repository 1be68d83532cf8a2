// batch_matmul: one product for each of the matrices that the leading axes number; those of a and b
// broadcast.
#include "common/exec/broadcast.h"
#include "common/exec/gemm.h"
#include "common/exec/kernel_table.h"
#include "common/exec/small_gemm.h"

namespace mu {
namespace {

Shape Leading(const Shape& shape) { return Shape(shape.dims().subspan(0, shape.rank() - 2)); }

class BatchMatmulKernel : public Kernel {
 public:
  BatchMatmulKernel(bool transpose_a, bool transpose_b)
      : transpose_a_(transpose_a), transpose_b_(transpose_b) {}

  absl::Status Run(KernelContext& context) const override {
    const Shape& a = context.input(0).shape;
    const Shape& b = context.input(1).shape;
    const int64_t m = a[a.rank() - (transpose_a_ ? 1 : 2)];
    const int64_t k = a[a.rank() - (transpose_a_ ? 2 : 1)];
    const int64_t n = b[b.rank() - (transpose_b_ ? 2 : 1)];
    const absl::StatusOr<BroadcastPlan> plan = PlanBroadcast(Leading(a), Leading(b));
    if (!plan.ok() || b[b.rank() - (transpose_b_ ? 1 : 2)] != k) {
      return absl::InvalidArgumentError(
          absl::StrCat("sizes do not fit: ", a.ToString(), transpose_a_ ? " (transposed)" : "",
                       " times ", b.ToString(), transpose_b_ ? " (transposed)" : ""));
    }
    const float* const x = context.in<float>(0);
    const float* const y = context.in<float>(1);
    Shape shape = plan->out;
    shape.Append(m);
    shape.Append(n);
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, shape));
    if (shape.elements() == 0) return absl::OkStatus();  // however many empty matrices there are
    const int64_t count = plan->out.elements();
    if (!transpose_a_ && Leading(b).elements() == 1 && Leading(a).elements() == count) {
      // All rows of all matrices times one matrix.
      Gemm(false, transpose_b_, count * m, n, k, x, y, out, Epilogue());
      return absl::OkStatus();
    }
    const int inner = plan->rank - 1;
    ForEachInnerRow(*plan, [&](int64_t to, int64_t from_a, int64_t from_b) {
      Products(plan->size[inner], m, n, k, x + from_a * m * k, plan->stride_a[inner] * m * k,
               y + from_b * k * n, plan->stride_b[inner] * k * n, out + to * m * n,
               context.scratch().buffers[0]);
    });
    return absl::OkStatus();
  }

 private:
  void Products(int64_t count, int64_t m, int64_t n, int64_t k, const float* x, int64_t stride_x,
                const float* y, int64_t stride_y, float* out, AlignedBuffer& scratch) const {
    const bool small = IsSmallProduct(m, n, k);
    if (small && stride_x == m * k && stride_y == k * n) {
      SmallGemm(transpose_a_, transpose_b_, count, m, n, k, x, y, out, scratch);
      return;
    }
    for (int64_t i = 0; i < count; ++i, x += stride_x, y += stride_y, out += m * n) {
      if (small) {
        SmallGemm(transpose_a_, transpose_b_, 1, m, n, k, x, y, out, scratch);
      } else {
        Gemm(transpose_a_, transpose_b_, m, n, k, x, y, out, Epilogue());
      }
    }
  }

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
