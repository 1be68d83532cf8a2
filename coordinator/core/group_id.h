// Names of groups of functions and of views of checkpoints.
#pragma once

#include <cstdint>

#include "common/base/ids.h"

namespace mu {

// Functions that are joined, cancelled and fail together. 0: training, whose functions may change
// state. Functions of another group only read.
using GroupId = StrongId<struct GroupIdTag, uint64_t>;
// A second set of values on the servers, those of one checkpoint. 0: the current values. Chosen by
// the shell, never given to another checkpoint.
using ViewId = StrongId<struct ViewIdTag, uint64_t>;

// Functions of groups have ids from here on, far above those of training. So no fence, cancellation
// or low-water mark of training covers them, and no checkpoint's position does.
inline constexpr FunctionId kFirstInGroups{uint64_t{1} << 62};
inline bool IsInGroup(FunctionId function) { return function >= kFirstInGroups; }

}  // namespace mu
