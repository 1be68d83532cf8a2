// Prices of machines, for the cost report of `coordinator soak --prices=FILE.yaml`.
#pragma once

#include <string>

#include "coordinator/cli/problem_list.h"
#include "coordinator/soak/soak_cost.h"

namespace mu {

// `text` is YAML, `source` its place:
//
//   currency: USD                                  # default
//   coordinator: {on_demand: 0.10}                 # one machine for an hour
//   worker: {on_demand: 0.40, preemptible: 0.12}
//   ps: {on_demand: 0.60, preemptible: 0.20}
//
// Each role and its on_demand are required. What is wrong goes to `problems`.
SoakPrices ParsePrices(const std::string& text, const std::string& source, ProblemList* problems);

}  // namespace mu
