// Kernels of special functions on Eigen's vectorised exp, log and tanh.
//
// Every element goes through the same eight-lane code, the last few by way of a padded copy; so a
// value does not depend on where in its tensor it stands, as it would with Eigen's array
// expressions, which finish with scalar calls.
#include <Eigen/Core>

#include "common/exec/dispatch.h"
#include "common/exec/kernel_table.h"
#include "common/exec/simd.h"

namespace mu {
namespace {

using Packet = Eigen::internal::Packet8f;

Packet Constant(float x) { return _mm256_set1_ps(x); }
Packet Select(Packet mask, Packet yes, Packet no) { return _mm256_blendv_ps(no, yes, mask); }

// Eigen's exp saturates short of infinity and its min and max lose NaNs; both must be seen by the
// check of a step.
Packet ExpOf(Packet x) {
  const Packet inside = Eigen::internal::pexp(x);
  const Packet overflow = _mm256_cmp_ps(x, Constant(88.7228394f), _CMP_GT_OQ);
  const Packet underflow = _mm256_cmp_ps(x, Constant(-103.97f), _CMP_LT_OQ);
  const Packet bounded =
      Select(overflow, Constant(INFINITY), Select(underflow, Constant(0), inside));
  return Select(_mm256_cmp_ps(x, x, _CMP_UNORD_Q), x, bounded);
}

struct Exp {
  static Packet Apply(Packet x) { return ExpOf(x); }
};
struct Log {
  static Packet Apply(Packet x) { return Eigen::internal::plog(x); }
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

// Elements i.. of an array of n, zeros past its end.
Packet Load(const float* x, int64_t i, int64_t n) {
  return i + 8 <= n ? _mm256_loadu_ps(x + i) : _mm256_maskload_ps(x + i, LaneMask(n - i));
}
void Store(float* x, int64_t i, int64_t n, Packet value) {
  if (i + 8 <= n) {
    _mm256_storeu_ps(x + i, value);
  } else {
    _mm256_maskstore_ps(x + i, LaneMask(n - i), value);
  }
}

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
  table.Add("tanh", Make<Tanh>);
  table.Add("sigmoid", Make<Sigmoid>);
  table.Add("sin", Make<Sin>);
  table.Add("cos", Make<Cos>);
  table.Add("sigmoid_cross_entropy", MakeCrossEntropy);
}

}  // namespace mu
