// What the core has to know of a step's result: everything but its values.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"

namespace mu {

struct StepOutcome {
  uint32_t step = 0;
  uint32_t samples = 0;   // records in its batch
  bool repeated = false;  // the servers had it already
  // By server: partitions that the step changed, and those whose restored state contained it.
  absl::InlinedVector<uint32_t, 4> updates, inherited;
  std::optional<uint32_t> late;  // by how many updates its latest gradient was; nullopt: not known
  uint32_t refused = 0;          // attempts before this one, since their gradients were too late
};

}  // namespace mu
