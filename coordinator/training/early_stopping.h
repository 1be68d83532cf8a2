// Whether training still helps, by one metric of its evaluations. Pure. Not thread safe.
//
//   EarlyStopping stopping({.metric = "auc", .patience = 3, .better = Better::kGreater});
//   ... evaluate ...
//   if (stopping.Observe(auc, steps, checkpoint)) ...  // the best so far
//   if (stopping.stopped()) break;
//
// Its state belongs into the user's state of checkpoints: then a program that is started again goes
// on with it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "common/metrics/metric_set.h"

namespace mu {

struct EarlyStoppingOptions {
  std::string metric;
  // So many evaluations in a row without an improvement end training. 0 is taken for 1; a trainer
  // refuses it.
  uint32_t patience = 3;
  double min_delta = 0;  // what is better by no more than this is no improvement
  bool restore_best = true;
  Better better = Better::kGreater;  // BetterOf(metric)
};

// The best evaluation so far, and how many have followed it.
struct EarlyStoppingState {
  double best = std::numeric_limits<double>::quiet_NaN();  // NaN: none had a value
  uint64_t best_steps = 0;                                 // of the job
  std::string best_checkpoint;  // with the values of then; empty: none was taken
  uint32_t waits = 0;           // evaluations since then
  uint64_t seen_steps = 0;      // of the job, after which the last evaluation was observed
};

class EarlyStopping {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options, EarlyStoppingState state = {})
      : options_(std::move(options)), state_(std::move(state)) {}

  // An evaluation after so many steps of the job; `value` is NaN if the metric was not defined,
  // which is no improvement. Returns whether it is the best so far.
  bool Observe(double value, uint64_t steps, const std::string& checkpoint) {
    const bool improved = std::isfinite(value) &&
                          (!std::isfinite(state_.best) ||
                           Improvement(options_.better, value, state_.best) > options_.min_delta);
    if (improved) {
      state_ = {value, steps, checkpoint, 0};
    } else {
      ++state_.waits;
    }
    state_.seen_steps = steps;
    return improved;
  }
  bool stopped() const { return state_.waits >= std::max<uint32_t>(1, options_.patience); }

  const EarlyStoppingOptions& options() const { return options_; }
  const EarlyStoppingState& state() const { return state_; }

 private:
  EarlyStoppingOptions options_;
  EarlyStoppingState state_;
};

}  // namespace mu
