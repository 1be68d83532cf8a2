// The schedule of learning rates: a linear warm-up. A pure function of the step's place in the job,
// so that it does not depend on how steps are packed into functions, nor on who runs them or how
// often.
#pragma once

#include <cstdint>

namespace mu {

// `step` counts from 0; 1 from step warmup_steps - 1 on.
inline float RateScale(uint64_t step, uint32_t warmup_steps) {
  if (step + 1 >= warmup_steps) return 1.0f;
  return static_cast<float>(step + 1) / static_cast<float>(warmup_steps);
}

}  // namespace mu
