// Duchi, Hazan, Singer (2011).
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

class Adagrad final : public UpdateRule {
 public:
  explicit Adagrad(const muster::AdagradProto& settings)
      : UpdateRule(settings.learning_rate()), epsilon_(settings.epsilon()) {}
  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    ForEachValue<1>(value, slots, gradient, n,
                    [r = rates.rate, epsilon = epsilon_](auto* x, auto* sum, auto g) {
                      *sum = *sum + g * g;
                      *x = *x - r * g / (Sqrt(*sum) + epsilon);
                    });
  }

 private:
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdagrad(const muster::AdagradProto& settings) {
  return std::make_unique<Adagrad>(settings);
}

}  // namespace mu
