// Whether a job ends with worse values than it had on the way. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/training/training_history.h"

namespace mu {

// What to say where `metric` of the evaluation at the `end` is worse than the best one of those on
// the way by 0.5% of that one; else nothing. `metric` is one that BetterOf knows. `of_current`:
// those on the way measured current values, which are in no checkpoint that could be kept.
std::string DescribeWorseEnd(const std::string& metric, const std::vector<Evaluation>& on_the_way,
                             const Evaluation& end, bool of_current);

}  // namespace mu
