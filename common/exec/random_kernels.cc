// Kernels that draw random numbers: by counter, so that a step that is run again draws the same.
#include <algorithm>
#include <cmath>

#include "common/exec/kernel_table.h"
#include "common/exec/random.h"

namespace mu {
namespace {

class DropoutKernel : public Kernel {
 public:
  explicit DropoutKernel(const AttrReader& attrs)
      : stream_(StreamOf(attrs)),
        threshold_(static_cast<uint64_t>(std::llround(std::ldexp(attrs.Float("rate"), 32)))),
        scale_(1.0f / (1.0f - attrs.Float("rate"))) {}

  absl::Status Run(KernelContext& context) const override {
    const View& x = context.input(0);
    const int64_t n = x.elements();
    const float* const in = x.as<float>();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, x.shape));
    const uint64_t key = StepKey(stream_, context.step());
    for (int64_t begin = 0; begin < n; begin += kDraws) {
      uint32_t draws[kDraws];
      Draw(key, begin, draws);
      const int64_t count = std::min(kDraws, n - begin);
      for (int64_t i = 0; i < count; ++i) {
        out[begin + i] = draws[i] < threshold_ ? 0.0f : in[begin + i] * scale_;
      }
    }
    return absl::OkStatus();
  }
  bool MayOverwrite(int) const override { return true; }

 private:
  const uint64_t stream_;
  const uint64_t threshold_;  // up to 2^32: draws below it are dropped
  const float scale_;
};

class RandomUniformKernel : public Kernel {
 public:
  explicit RandomUniformKernel(const AttrReader& attrs)
      : stream_(StreamOf(attrs)), low_(attrs.Float("low")), high_(attrs.Float("high")) {}

  absl::Status Run(KernelContext& context) const override {
    const Shape& shape = context.input(0).shape;
    const int64_t n = shape.elements();
    MU_ASSIGN_OR_RETURN(float* const out, context.Output<float>(0, shape));
    const uint64_t key = StepKey(stream_, context.step());
    for (int64_t begin = 0; begin < n; begin += kDraws) {
      uint32_t draws[kDraws];
      Draw(key, begin, draws);
      const int64_t count = std::min(kDraws, n - begin);
      for (int64_t i = 0; i < count; ++i) {
        const float value = low_ + UnitFloat(draws[i]) * (high_ - low_);
        out[begin + i] = value < high_ ? value : low_;  // rounding may reach the upper bound
      }
    }
    return absl::OkStatus();
  }
  bool ReadsElements(int) const override { return false; }

 private:
  const uint64_t stream_;
  const float low_;
  const float high_;
};

template <typename K>
absl::StatusOr<KernelPtr> Make(const NodeSpec& spec) {
  return KernelPtr(new K(spec.attrs));
}

}  // namespace

void RegisterRandomKernels(KernelTable& table) {
  table.Add("dropout", Make<DropoutKernel>);
  table.Add("random_uniform", Make<RandomUniformKernel>);
}

}  // namespace mu
