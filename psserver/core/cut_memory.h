// The pushes that the state of a cut contains. A value.
#pragma once

#include <memory>
#include <vector>

#include "psserver/core/inherited_memory.h"

namespace mu {

struct CutMemory {
  std::vector<AppliedSteps::Range> applied;          // by this server
  std::shared_ptr<const InheritedMemory> inherited;  // before that; nullptr: nothing
};

}  // namespace mu
