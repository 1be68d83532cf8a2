// What a function costs beside its steps.
#pragma once

#include "coordinator/cluster/coordinator.h"

namespace mu {

// In seconds, from calls to a worker that do nothing: the fixed cost that packing steps has to
// hide. Where no other function waits on a worker (one in flight), that of the next one begins when
// its result has arrived, so that it counts twice.
double MeasureFunctionSeconds(Coordinator& coordinator);

}  // namespace mu
