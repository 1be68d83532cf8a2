// matmul, and matmul fused with what follows it. The fused ops exist only in plans
// (common/exec/fusion.cc makes them):
//   matmul_bias(a, b, bias)  matmul_bias_relu(a, b, bias)  matmul_relu(a, b)  matmul_relu_grad(a,
//   b, y)
#include "common/exec/gemm.h"
#include "common/exec/kernel_table.h"

namespace mu {
namespace {

enum class Then { kNothing, kBias, kBiasRelu, kRelu, kReluGrad };

class MatmulKernel : public Kernel {
 public:
  MatmulKernel(bool transpose_a, bool transpose_b, Then then)
      : transpose_a_(transpose_a), transpose_b_(transpose_b), then_(then) {}

  absl::Status Run(KernelContext& context) const override {
    const Shape& a = context.input(0).shape;
    const Shape& b = context.input(1).shape;
    const int64_t m = a[transpose_a_ ? 1 : 0];
    const int64_t k = a[transpose_a_ ? 0 : 1];
    const int64_t n = b[transpose_b_ ? 0 : 1];
    if (k != b[transpose_b_ ? 1 : 0]) {
      return absl::InvalidArgumentError(
          absl::StrCat("inner sizes differ: ", a.ToString(), transpose_a_ ? " (transposed)" : "",
                       " times ", b.ToString(), transpose_b_ ? " (transposed)" : ""));
    }
    Epilogue epilogue;
    epilogue.relu = then_ == Then::kRelu || then_ == Then::kBiasRelu;
    if (then_ == Then::kBias || then_ == Then::kBiasRelu) {
      if (context.input(2).elements() != n) {
        return absl::InvalidArgumentError(absl::StrCat("shapes ", Shape({m, n}).ToString(), " and ",
                                                       context.input(2).shape.ToString(),
                                                       " do not broadcast"));
      }
      epilogue.bias = context.in<float>(2);
    }
    if (then_ == Then::kReluGrad) {
      if (context.input(2).shape != Shape({m, n})) {
        return absl::InvalidArgumentError(absl::StrCat("shapes ", Shape({m, n}).ToString(), " and ",
                                                       context.input(2).shape.ToString(),
                                                       " differ"));
      }
      epilogue.positive = context.in<float>(2);
    }
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, Shape({m, n})));
    Gemm(transpose_a_, transpose_b_, m, n, k, context.in<float>(0), context.in<float>(1), out,
         epilogue);
    return absl::OkStatus();
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
  const Then then_;
};

template <Then then>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(
      new MatmulKernel(spec.attrs.Bool("transpose_a"), spec.attrs.Bool("transpose_b"), then));
}

}  // namespace

void RegisterMatmulKernels(KernelTable& table) {
  table.Add("matmul", Make<Then::kNothing>);
  table.Add("matmul_bias", Make<Then::kBias>);
  table.Add("matmul_bias_relu", Make<Then::kBiasRelu>);
  table.Add("matmul_relu", Make<Then::kRelu>);
  table.Add("matmul_relu_grad", Make<Then::kReluGrad>);
}

}  // namespace mu
