// Kernels of special functions.
#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/packet_math.h"

namespace mu {
namespace {

struct Exp {
  static Packet Apply(Packet x) { return ExpOf(x); }
};
struct Log {
  static Packet Apply(Packet x) { return LogOf(x); }
};
struct Log1p {
  static Packet Apply(Packet x) { return Eigen::internal::plog1p(x); }
};
struct Sin {
  static Packet Apply(Packet x) { return Eigen::internal::psin(x); }
};
struct Cos {
  static Packet Apply(Packet x) { return Eigen::internal::pcos(x); }
};
struct Tanh {
  static Packet Apply(Packet x) {
    return Select(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), x, Eigen::internal::ptanh(x));
  }
};
// 1 / (1 + exp(-x)) for x >= 0, exp(x) / (1 + exp(x)) below: exact in both tails.
struct Sigmoid {
  static Packet Apply(Packet x) {
    const Packet e = ExpOf(_mm256_or_ps(x, Constant(-0.0f)));  // exp(-|x|)
    const Packet numerator = Select(_mm256_cmp_ps(x, Constant(0), _CMP_LT_OQ), e, Constant(1));
    return _mm256_div_ps(numerator, _mm256_add_ps(Constant(1), e));
  }
};
// max(x, 0) - x * z + log1p(exp(-|x|))
struct SigmoidCrossEntropy {
  static Packet Apply(Packet x, Packet z) {
    const Packet e = ExpOf(_mm256_or_ps(x, Constant(-0.0f)));
    const Packet positive = _mm256_max_ps(Constant(0), x);
    return _mm256_add_ps(_mm256_sub_ps(positive, _mm256_mul_ps(x, z)), Eigen::internal::plog1p(e));
  }
};

// Abramowitz and Stegun (1964): 7.1.26 with an error below 1.5e-7; near 0, where its relative error
// is large, the series 7.1.5.
struct Erf {
  static Packet Apply(Packet x) {
    const Packet sign = _mm256_and_ps(x, Constant(-0.0f));
    const Packet size = _mm256_andnot_ps(Constant(-0.0f), x);
    const Packet square = _mm256_mul_ps(x, x);
    Packet series = Constant(-1.0f / 1320);
    for (const float term : {1.0f / 216, -1.0f / 42, 0.1f, -1.0f / 3, 1.0f}) {
      series = _mm256_fmadd_ps(series, square, Constant(term));
    }
    series = _mm256_mul_ps(_mm256_mul_ps(Constant(1.1283791671f), size), series);
    const Packet t =
        _mm256_div_ps(Constant(1), _mm256_fmadd_ps(Constant(0.3275911f), size, Constant(1)));
    Packet tail = Constant(1.061405429f);
    for (const float term : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f, 0.0f}) {
      tail = _mm256_fmadd_ps(tail, t, Constant(term));
    }
    tail = _mm256_mul_ps(tail, ExpOf(_mm256_xor_ps(square, Constant(-0.0f))));
    const Packet far = _mm256_sub_ps(Constant(1), tail);
    const Packet near = _mm256_cmp_ps(size, Constant(0.5f), _CMP_LT_OQ);
    return _mm256_or_ps(sign, Select(near, series, far));
  }
};

template <typename Op>
class MathKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int64_t n = x.elements();
    const float* const in = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, x.shape));
    for (int64_t i = 0; i < n; i += 8) Store(out, i, n, Op::Apply(Load(in, i, n)));
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }
};

class SigmoidCrossEntropyKernel : public Kernel {
 public:
  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const View& z = context.input(1);
    if (x.shape != z.shape) {
      return absl::InvalidArgumentError(absl::StrCat("logits of shape ", x.shape.ToString(),
                                                     " but labels of shape ", z.shape.ToString()));
    }
    const int64_t n = x.elements();
    const float* const logits = x.as<float>();
    const float* const labels = z.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, x.shape));
    for (int64_t i = 0; i < n; i += 8) {
      Store(out, i, n, SigmoidCrossEntropy::Apply(Load(logits, i, n), Load(labels, i, n)));
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }
};

template <typename Op>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return DispatchType(FloatTypes(), spec.inputs[0].dtype, spec,
                      [](float) { return KernelPtr(new MathKernel<Op>()); });
}

absl::StatusOr<KernelPtr> MakeCrossEntropy(const NodeSpec&) {
  return KernelPtr(new SigmoidCrossEntropyKernel());
}

}  // namespace

void RegisterMathKernels(KernelTable& table) {
  table.Add("exp", Make<Exp>);
  table.Add("log", Make<Log>);
  table.Add("log1p", Make<Log1p>);
  table.Add("tanh", Make<Tanh>);
  table.Add("erf", Make<Erf>);
  table.Add("sigmoid", Make<Sigmoid>);
  table.Add("sin", Make<Sin>);
  table.Add("cos", Make<Cos>);
  table.Add("sigmoid_cross_entropy", MakeCrossEntropy);
}

}  // namespace mu
