// Stochastic gradient descent, with momentum and Nesterov's (Sutskever et al., 2013), as PyTorch's
// SGD: the momentum gathers gradients, and the rate of the step multiplies all of it.
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

class Sgd final : public UpdateRule {
 public:
  using UpdateRule::UpdateRule;
  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    ForEachValue<0>(value, slots, gradient, n,
                    [r = rates.rate](auto* x, auto*, auto g) { *x = *x - r * g; });
  }
};

template <bool kNesterov>
class Momentum final : public UpdateRule {
 public:
  explicit Momentum(const muster::SgdProto& settings)
      : UpdateRule(settings.learning_rate()), momentum_(settings.momentum()) {}
  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    ForEachValue<1>(value, slots, gradient, n,
                    [r = rates.rate, momentum = momentum_](auto* x, auto* m, auto g) {
                      *m = momentum * *m + g;
                      if constexpr (kNesterov) {
                        *x = *x - r * (g + momentum * *m);
                      } else {
                        *x = *x - r * *m;
                      }
                    });
  }

 private:
  const float momentum_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeSgd(const muster::SgdProto& settings) {
  if (settings.momentum() == 0) return std::make_unique<Sgd>(settings.learning_rate());
  if (settings.nesterov()) return std::make_unique<Momentum<true>>(settings);
  return std::make_unique<Momentum<false>>(settings);
}

}  // namespace mu
