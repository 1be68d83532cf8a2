// Names a checkpoint of a job among the others; they grow. 0 is the state that a job begins with:
// no checkpoint, initial values.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace mu {

using CheckpointNumber = StrongId<struct CheckpointNumberTag, uint64_t>;

inline constexpr CheckpointNumber kInitialValues{0};

}  // namespace mu
