// How many steps to pack into a function. Pure.
//
// A function costs the coordinator and the network a fixed time, whatever it does; packed steps
// share it. Too many steps, and a lost worker takes long to be missed and the end of an epoch is
// shared badly. So: as few as keep the fixed cost within a share of the function's time
// (`max_gap`), and never more than a fair part of what is left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/time/time.h"
#include "coordinator/cluster/remote_value.h"

namespace mu {

class StepPacer {
 public:
  static constexpr double kMaxGap = 0.01;
  static constexpr uint32_t kMaxSteps = 1000;
  // Of the gaps that were seen, so many decide, and they count for somewhat more: what comes
  // varies.
  static constexpr size_t kGaps = 64;
  static constexpr double kHeadroom = 1.2;
  // A gap so many times the cost of a function was a wait for something else: for a server that was
  // recovered, for the end of an evaluation.
  static constexpr double kGapOfAWait = 10;

  // fixed: always that many; 0: chosen. `function_seconds`: what a function costs beside its
  // steps, as long as no gap shows more. `max_gap`: what that may be of the time of its steps,
  // above 0. `most_ahead`: see Coordinator::BoundStaleness.
  StepPacer(uint32_t fixed, double function_seconds, double max_gap = kMaxGap,
            std::optional<uint64_t> most_ahead = std::nullopt)
      : fixed_(fixed),
        function_seconds_(function_seconds),
        max_gap_(max_gap),
        most_ahead_(most_ahead) {}

  // After `seconds` in which `workers` workers ran `steps` steps.
  void Observe(double seconds, uint64_t steps, int workers) {
    if (steps == 0 || seconds <= 0) return;
    step_seconds_ = seconds * workers / static_cast<double>(steps);
  }

  // A function has ended. Its steps tell the gaps before its runs; the rest is as in Observe.
  void ObserveFunction(const FunctionResult& function, double seconds, uint64_t steps,
                       int workers) {
    Observe(seconds, steps, workers);
    for (size_t step = 0; step < function.steps(); ++step) {
      if (const absl::Duration gap = function.gap(step); gap > absl::ZeroDuration())
        ObserveGap(absl::ToDoubleSeconds(gap));
    }
  }

  // A worker spent `seconds` between two functions.
  void ObserveGap(double seconds) {
    if (seconds > kGapOfAWait * function_seconds_) return;
    gaps_.push_back(seconds);
    sum_of_gaps_ += seconds;
    if (gaps_.size() <= kGaps) return;
    sum_of_gaps_ -= gaps_.front();
    gaps_.pop_front();
  }

  uint32_t Next(uint64_t remaining, int workers) const {
    return static_cast<uint32_t>(std::min<uint64_t>(Chosen(remaining, workers), remaining));
  }

  // What a function has that no end cuts, with a fair part of `remaining` where it is chosen. At
  // least 1.
  uint32_t Chosen(uint64_t remaining, int workers) const {
    uint64_t steps = fixed_;
    if (fixed_ == 0) {
      // Nothing is known before the first results.
      steps = step_seconds_ <= 0
                  ? 1
                  : static_cast<uint64_t>(std::min<double>(
                        kMaxSteps, std::ceil(GapSeconds() / max_gap_ / step_seconds_)));
      // The last functions are small, so that all workers end together.
      const uint64_t share =
          std::max<uint64_t>(1, remaining / (4 * static_cast<uint64_t>(std::max(1, workers))));
      steps = std::clamp<uint64_t>(steps, 1, std::min<uint64_t>(kMaxSteps, share));
      // Every worker can have a function to run and one that waits.
      if (most_ahead_.has_value()) {
        const uint64_t functions = 2 * static_cast<uint64_t>(std::max(1, workers));
        steps = std::min(steps, std::max<uint64_t>(1, *most_ahead_ / functions));
      }
    }
    return static_cast<uint32_t>(steps);
  }

 private:
  // Between two functions of a worker. A few gaps say little.
  double GapSeconds() const {
    if (gaps_.size() < kGaps / 4) return function_seconds_;
    return std::max(function_seconds_,
                    kHeadroom * sum_of_gaps_ / static_cast<double>(gaps_.size()));
  }

  const uint32_t fixed_;
  const double function_seconds_;
  const double max_gap_;
  const std::optional<uint64_t> most_ahead_;
  double step_seconds_ = 0;
  std::deque<double> gaps_;  // the last ones
  double sum_of_gaps_ = 0;
};

}  // namespace mu
