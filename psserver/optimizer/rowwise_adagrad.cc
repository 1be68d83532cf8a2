// Adagrad with one sum for each row: the mean of its squared gradients is added, as FBGEMM's exact
// row-wise Adagrad does.
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

class RowwiseAdagrad final : public UpdateRule {
 public:
  explicit RowwiseAdagrad(const muster::RowwiseAdagradProto& settings)
      : UpdateRule(settings.learning_rate()), epsilon_(settings.epsilon()) {}
  bool by_row() const override { return true; }
  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    float& sum = *slots[0];
    sum = sum + SumOfSquares(gradient, n) / static_cast<float>(n);
    const float rate = rates.rate / (Sqrt(sum) + epsilon_);
    ForEachValue<0>(value, slots, gradient, n,
                    [rate](auto* x, auto*, auto g) { *x = *x - rate * g; });
  }

 private:
  const float epsilon_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeRowwiseAdagrad(const muster::RowwiseAdagradProto& settings) {
  return std::make_unique<RowwiseAdagrad>(settings);
}

}  // namespace mu
