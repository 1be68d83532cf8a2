// How late gradients were, step by step, where the function asks (MinimizeOptions::staleness). A
// value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "coordinator/core/step_outcome.h"

namespace mu {

struct StalenessCounts {
  uint64_t steps = 0;    // of which it is known
  uint64_t updates = 0;  // sum over them
  uint32_t max = 0;
  uint64_t refused = 0;  // attempts at steps, since their gradients were too late
  // Steps by the least lateness of their class: each lateness below kExact is one, from there on
  // they are twice as wide each time.
  std::map<uint32_t, uint64_t> histogram;

  static constexpr uint32_t kExact = 16;
  static uint32_t ClassOf(uint32_t late) { return late < kExact ? late : std::bit_floor(late); }
  // The greatest lateness of the class that begins with `least`.
  static uint32_t LastOf(uint32_t least) { return least < kExact ? least : least + (least - 1); }

  void Add(const StepOutcome& step) {
    refused += step.refused;
    if (!step.late.has_value()) return;
    ++steps;
    updates += *step.late;
    max = std::max(max, *step.late);
    ++histogram[ClassOf(*step.late)];
  }
};

}  // namespace mu
