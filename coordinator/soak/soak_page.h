// A soak's record as one HTML file, without scripts and without files beside it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coordinator/soak/soak_cost.h"
#include "coordinator/soak/soak_judge.h"

namespace mu {

// For each job and setup: plots of time and quality over the runs, what losses cost, what was
// flagged, and, with prices, what the runs cost. The newest job first.
std::string SoakPage(const std::vector<SoakVerdict>& verdicts,
                     const std::optional<SoakPrices>& prices);

}  // namespace mu
