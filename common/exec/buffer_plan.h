// Which values share memory. Private to the planner.
#pragma once

#include "common/exec/plan.h"

namespace mu {

// Gives every output of plan->nodes its place and counts plan->buffers, which may hold some already
// (of pulled values). With `reuse`, a buffer whose value nobody reads any more is given to a later
// one of a similar size, and a result is written over an input that dies with it where the kernel
// allows. What is pulled, read from the batch or constant is never written over.
void AssignBuffers(bool reuse, Plan* plan);

}  // namespace mu
