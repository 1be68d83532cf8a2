// Whether a job ends with worse values than it had on the way. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/training/training_history.h"

namespace mu {

// What to say where `metric` of the evaluation at the `end` is worse than the best one of those on
// the way by 0.5% of that one, and as people read it (MetricText); else nothing. `metric` is one
// that BetterOf knows.
std::string DescribeWorseEnd(const std::string& metric, const std::vector<Evaluation>& on_the_way,
                             const Evaluation& end);

}  // namespace mu
