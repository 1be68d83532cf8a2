// How fast a worker has been with each function lately. A pure state machine: the times that steps
// took are handed in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>

#include "common/base/ids.h"

namespace mu {

class WorkerPace {
 public:
  // Steps of this function took `seconds` each, as seen by the coordinator.
  void Observe(Fingerprint function, double seconds) {
    Recent& recent = recent_[function];
    recent.seconds[recent.count++ % kObservations] = seconds;
    idle_seconds_ = 0;
  }
  // Seconds for a step; nothing before there are several observations. The best of the latest ones
  // counts: a worker that had to read data, or was disturbed, is not slow.
  std::optional<double> Seconds(Fingerprint function) const {
    const auto it = recent_.find(function);
    if (it == recent_.end() || it->second.count < kObservations) return std::nullopt;
    return *std::min_element(it->second.seconds.begin(), it->second.seconds.end());
  }
  // It had nothing to do for so long, while others had. What is known of one that has been idle for
  // long is forgotten, so that it is tried again.
  void Idle(double seconds) {
    if (recent_.empty()) return;
    idle_seconds_ += seconds;
    double slowest = 0;
    for (const auto& [function, recent] : recent_)
      slowest = std::max(slowest, *std::max_element(recent.seconds.begin(), recent.seconds.end()));
    if (idle_seconds_ < std::max(kForgetSeconds, kForgetTimes * slowest)) return;
    idle_seconds_ = 0;
    recent_.clear();
  }

 private:
  static constexpr size_t kObservations = 3;
  // So long, and so many times its longest step: to try a slow worker costs the end of an epoch one
  // of its steps.
  static constexpr double kForgetSeconds = 10;
  static constexpr double kForgetTimes = 10;
  struct Recent {
    std::array<double, kObservations> seconds = {};
    size_t count = 0;
  };
  std::map<Fingerprint, Recent> recent_;
  double idle_seconds_ = 0;
};

}  // namespace mu
