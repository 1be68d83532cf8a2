// Chen et al., "Symbolic Discovery of Optimization Algorithms" (2023), algorithm 2.
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

// 1, 0 or -1. Of numbers: servers take no gradient that is NaN.
inline float SignOf(float x) { return x == 0 ? 0.0f : std::copysign(1.0f, x); }
inline Eight SignOf(Eight x) {
  const __m256 one = _mm256_or_ps(_mm256_and_ps(x.v, _mm256_set1_ps(-0.0f)), _mm256_set1_ps(1.0f));
  return Eight(_mm256_andnot_ps(_mm256_cmp_ps(x.v, _mm256_setzero_ps(), _CMP_EQ_OQ), one));
}

class Lion final : public UpdateRule {
 public:
  explicit Lion(const muster::LionProto& settings)
      : UpdateRule(settings.learning_rate()),
        beta1_(settings.beta1()),
        beta2_(settings.beta2()),
        weight_decay_(settings.weight_decay()) {}

  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    ForEachValue<1>(value, slots, gradient, n,
                    [r = rates.rate, beta1 = beta1_, beta2 = beta2_, decay = weight_decay_](
                        auto* x, auto* m, auto g) {
                      const auto direction = SignOf(beta1 * m[0] + (1 - beta1) * g);
                      *x = *x - r * (direction + decay * *x);
                      m[0] = beta2 * m[0] + (1 - beta2) * g;
                    });
  }

 private:
  const float beta1_, beta2_, weight_decay_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeLion(const muster::LionProto& settings) {
  return std::make_unique<Lion>(settings);
}

}  // namespace mu
