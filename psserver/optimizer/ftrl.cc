// McMahan et al. (2013), "Ad Click Prediction: a View from the Trenches", algorithm 1. Its alpha is
// the learning rate alone: z is a sum of values weighted by 1 / alpha, so x follows from z only for
// the alpha with which z was gathered. What scales the rate of a step (warm-up, schedule, discount)
// scales the gradient instead.
#include <cmath>

#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

class Ftrl final : public UpdateRule {
 public:
  explicit Ftrl(const muster::FtrlProto& settings)
      : UpdateRule(settings.learning_rate()),
        alpha_(settings.learning_rate()),
        beta_(settings.beta()),
        l1_(settings.l1()),
        l2_(settings.l2()) {}

  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    if (rates.rate == 0) return;  // changes nothing, not even by rounding
    ForEachValue<2>(value, slots, gradient, n,
                    [alpha = alpha_, c = rates.factor, beta = beta_, l1 = l1_, l2 = l2_](
                        auto* x, auto* s, auto g) {
                      const auto sum = s[1] + g * g;
                      const auto root = Sqrt(sum);
                      const auto sigma = (root - Sqrt(s[1])) / alpha;
                      s[0] = s[0] + (c * g - sigma * *x);
                      s[1] = sum;
                      // 0 where |z| <= l1.
                      const auto beyond = s[0] - Max(Min(s[0], decltype(g)(l1)), decltype(g)(-l1));
                      *x = (decltype(g)(0.0f) - beyond) / ((beta + root) / alpha + l2);
                    });
  }

  // With Apply's arithmetic: where it made the values, nothing may change.
  void Adopt(const float* value, Slots slots, size_t n) const override {
    float* const z = slots[0];
    const float* const sums = slots[1];
    for (size_t i = 0; i < n; ++i) {
      const float x = value[i];
      const float slope = (beta_ + Sqrt(sums[i])) / alpha_ + l2_;
      const float beyond = z[i] - Max(Min(z[i], l1_), -l1_);
      if ((0.0f - beyond) / slope == x) continue;
      z[i] = x == 0 ? 0.0f : 0.0f - x * slope - std::copysign(l1_, x);
    }
  }

 private:
  const float alpha_, beta_, l1_, l2_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeFtrl(const muster::FtrlProto& settings) {
  return std::make_unique<Ftrl>(settings);
}

}  // namespace mu
