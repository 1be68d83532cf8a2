// Tieleman and Hinton (2012), lecture 6e; centered: Graves (2013), section 4.2. With the epsilon
// beside the root and the momentum of PyTorch's RMSprop.
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

template <bool kCentered, bool kMomentum>
class Rmsprop final : public UpdateRule {
 public:
  explicit Rmsprop(const muster::RmspropProto& settings)
      : UpdateRule(settings.learning_rate()),
        rho_(settings.rho()),
        epsilon_(settings.epsilon()),
        momentum_(settings.momentum()) {}

  void Apply(const StepRates& rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    constexpr size_t kSlots = 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
    ForEachValue<kSlots>(value, slots, gradient, n,
                         [r = rates.rate, rho = rho_, epsilon = epsilon_, momentum = momentum_](
                             auto* x, auto* s, auto g) {
                           s[0] = rho * s[0] + (1 - rho) * g * g;
                           auto variance = s[0];
                           if constexpr (kCentered) {
                             s[1] = rho * s[1] + (1 - rho) * g;
                             // Never below 0 but for rounding.
                             variance = Max(s[0] - s[1] * s[1], decltype(g)(0.0f));
                           }
                           auto direction = g / (Sqrt(variance) + epsilon);
                           if constexpr (kMomentum) {
                             direction = momentum * s[kSlots - 1] + direction;
                             s[kSlots - 1] = direction;
                           }
                           *x = *x - r * direction;
                         });
  }

 private:
  const float rho_, epsilon_, momentum_;
};

}  // namespace

std::unique_ptr<const UpdateRule> MakeRmsprop(const muster::RmspropProto& settings) {
  if (settings.centered()) {
    if (settings.momentum() > 0) return std::make_unique<Rmsprop<true, true>>(settings);
    return std::make_unique<Rmsprop<true, false>>(settings);
  }
  if (settings.momentum() > 0) return std::make_unique<Rmsprop<false, true>>(settings);
  return std::make_unique<Rmsprop<false, false>>(settings);
}

}  // namespace mu
