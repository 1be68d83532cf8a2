// How many steps to pack into a function. Pure.
//
// A function costs the coordinator and the network a fixed time, whatever it does; packed steps
// share it. Too many steps, and a lost worker takes long to be missed and the end of an epoch is
// shared badly. So: as few as keep the fixed cost within a share of the function's time
// (`max_gap`), and never more than a fair part of what is left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace mu {

class StepPacer {
 public:
  static constexpr double kMaxGap = 0.01;
  static constexpr uint32_t kMaxSteps = 1000;

  // fixed: always that many; 0: chosen. `function_seconds`: what a function costs beside its
  // steps, measured. `max_gap`: what that may be of the time of its steps, above 0. `most_ahead`:
  // see Coordinator::BoundStaleness.
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

  uint32_t Next(uint64_t remaining, int workers) const {
    if (remaining == 0) return 0;
    uint64_t steps = fixed_;
    if (fixed_ == 0) {
      // Nothing is known before the first results.
      steps = step_seconds_ <= 0
                  ? 1
                  : static_cast<uint64_t>(std::min<double>(
                        kMaxSteps, std::ceil(function_seconds_ / max_gap_ / step_seconds_)));
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
    return static_cast<uint32_t>(std::min(steps, remaining));
  }

 private:
  const uint32_t fixed_;
  const double function_seconds_;
  const double max_gap_;
  const std::optional<uint64_t> most_ahead_;
  double step_seconds_ = 0;
};

}  // namespace mu
