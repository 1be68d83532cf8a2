// Runs histories: one with its trace, or many on several threads; and the scenarios that have
// names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/cluster.h"

namespace mu::sim {

struct NamedScenario {
  std::string name;
  ScenarioLimits limits;
  std::optional<Moment> shows = {};  // what it is there for: some of its histories have to see it
};
// All faults together, and one for each promise of tests/conformance that concerns decisions.
const std::vector<NamedScenario>& NamedScenarios();
const ScenarioLimits* FindScenario(const std::string& name);

Outcome RunOne(uint64_t seed, const ScenarioLimits& limits, bool trace = false);

struct Summary {
  uint64_t histories = 0;
  uint64_t failures = 0;
  uint64_t events = 0;
  Time virtual_time = 0;
  Coverage coverage;
  std::map<uint64_t, std::string> first_failures;  // some, by seed

  void Add(uint64_t seed, const Outcome& outcome);
};
// Seeds first, first + 1, ...; threads share nothing. `stop_early`: at about the first failure.
Summary RunMany(uint64_t first, uint64_t seeds, int threads, const ScenarioLimits& limits,
                bool stop_early = false);

}  // namespace mu::sim
