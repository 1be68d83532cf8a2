// Synchronous rounds as the coordinator decides them. A step of training is a contribution: it
// starts when the values that it is to read are the same on all servers, its pushes are kept by the
// servers that they touch, and when all of these have acknowledged, it is complete. The coordinator
// takes `replicas` that are complete as the round's set and tells all servers, which apply the
// set's mean once. Then the round is committed, its steps are finished, and the next one begins.
// What is not in the set runs again in a later round; what came too late for several rounds is
// waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"

namespace mu {

struct RoundRules {
  // Rounds that a step may be too late for: the next one in which it runs waits for it. With one,
  // rounds would wait for what was late by chance; with more, a step that is slow wherever it runs
  // would be computed in vain more often.
  static constexpr uint32_t kMostLate = 2;

  uint32_t replicas = 0;  // contributions of a round; 0: there are no rounds
  uint32_t backups = 0;   // so many more are in flight
  bool sum_rows = false;  // rows of tables get the sum of the gradients, not the mean
  bool on() const { return replicas > 0; }
  uint32_t most() const { return replicas + backups; }
  // All contributions of a round read successive batches of one lease, whoever computes them.
  bool one_lease() const { return on() && backups == 0; }
  friend bool operator==(const RoundRules&, const RoundRules&) = default;
};

// The set of a round, for servers. Empty: nothing is applied, and the next round is the one after
// it.
struct RoundSet {
  struct Step {
    FunctionId function;
    uint32_t step = 0;
    uint32_t weight = 0;  // records
    friend bool operator==(const Step&, const Step&) = default;
  };
  uint64_t round = 0;       // from 1
  std::vector<Step> steps;  // in the order of the data
  bool sum_rows = false;
};

// The last round that all servers have applied. They take contributions to the next one only, or in
// a new generation to any.
struct AppliedRound {
  std::optional<Generation> generation;  // none: they have applied none
  uint64_t round = 0;
};

// For the report.
struct RoundCounts {
  uint64_t committed = 0;
  uint64_t contributions = 0;  // in these
  uint64_t small = 0;          // rounds with fewer than `replicas`
  uint64_t late = 0;           // contributions that were too late for a round, and ran again
};

}  // namespace mu
