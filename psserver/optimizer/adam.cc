// Kingma and Ba (2015), algorithm 1; with decoupled weight decay, Loshchilov and Hutter (2019),
// algorithm 2. The biases of the moments are those of the job's step or of the row's own count.
#include "common/optimizer/exact_math.h"
#include "psserver/optimizer/lanes.h"
#include "psserver/optimizer/update_rule.h"

namespace mu {
namespace {

struct Settings {
  float learning_rate, beta1, beta2, epsilon;
  float weight_decay;
  bool count_rows;
};

// Of one count of updates, which all values of a call share.
void CorrectBias(const Settings& settings, uint64_t count, StepRates* rates) {
  const double first = 1 - IntegerPower(settings.beta1, count);
  const double second = 1 - IntegerPower(settings.beta2, count);
  rates->corrected_rate = static_cast<float>(rates->rate / first);
  rates->root_scale = static_cast<float>(1 / std::sqrt(second));
}

class Adam final : public UpdateRule {
 public:
  explicit Adam(const Settings& settings)
      : UpdateRule(settings.learning_rate), settings_(settings) {}

  bool needs_job_step() const override { return !settings_.count_rows; }
  bool by_row() const override { return settings_.count_rows; }

  StepRates RatesOf(const PushStep& step) const override {
    StepRates rates = UpdateRule::RatesOf(step);
    if (!settings_.count_rows) CorrectBias(settings_, step.job_step, &rates);
    return rates;
  }

  void Apply(const StepRates& step_rates, float* value, Slots slots, const float* gradient,
             size_t n) const override {
    StepRates rates = step_rates;
    if (settings_.count_rows) {
      // A float counts to 2^24 and stays there: the bias is gone long before.
      float& count = *slots[2];
      count += 1;
      CorrectBias(settings_, static_cast<uint64_t>(count), &rates);
    }
    const Settings s = settings_;
    const float keep = 1 - rates.rate * s.weight_decay;
    ForEachValue<2>(value, slots, gradient, n, [&](auto* x, auto* m, auto g) {
      m[0] = s.beta1 * m[0] + (1 - s.beta1) * g;
      m[1] = s.beta2 * m[1] + (1 - s.beta2) * g * g;
      const auto root = Sqrt(m[1]) * rates.root_scale;
      *x = *x * keep - rates.corrected_rate * m[0] / (root + s.epsilon);
    });
  }

 private:
  const Settings settings_;
};

template <typename Proto>
Settings SettingsOf(const Proto& proto) {
  return {proto.learning_rate(),           proto.beta1(), proto.beta2(), proto.epsilon(), 0,
          proto.bias_correction() == "row"};
}

}  // namespace

std::unique_ptr<const UpdateRule> MakeAdam(const muster::AdamProto& proto) {
  return std::make_unique<Adam>(SettingsOf(proto));
}

std::unique_ptr<const UpdateRule> MakeAdamW(const muster::AdamWProto& proto) {
  Settings settings = SettingsOf(proto);
  settings.weight_decay = proto.weight_decay();
  return std::make_unique<Adam>(settings);
}

}  // namespace mu
