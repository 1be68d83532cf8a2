// Runs histories: one with its trace, or many on several threads; and the scenarios that have
// names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/coverage.h"
#include "tests/sim/message.h"
#include "tests/sim/scenario.h"

namespace mu::sim {

struct NamedScenario {
  std::string name;
  ScenarioLimits limits;
};
// "everything", and one for each promise of tests/conformance that concerns decisions.
const std::vector<NamedScenario>& NamedScenarios();
const ScenarioLimits* FindScenario(const std::string& name);

struct HistoryResult {
  bool ok = true;
  std::string problem;
  std::string description;
  std::string trace;
  uint64_t events = 0;
  Time ended = 0;
};
HistoryResult RunOne(uint64_t seed, const ScenarioLimits& limits, bool trace = false);

struct Summary {
  struct Failure {
    uint64_t seed;
    std::string problem;
  };
  uint64_t histories = 0;
  uint64_t failures = 0;
  uint64_t events = 0;
  Time virtual_time = 0;
  Coverage coverage;
  std::vector<Failure> first_failures;  // some, by seed
};
// Seeds first, first + 1, ...; threads share nothing. `stop_early`: at about the first failure.
Summary RunMany(uint64_t first, uint64_t seeds, int threads, const ScenarioLimits& limits,
                bool stop_early = false);

}  // namespace mu::sim
