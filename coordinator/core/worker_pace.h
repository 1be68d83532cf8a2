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
    passed_over_ = 0;
  }
  // Seconds for a step; nothing before there are several observations. The best of the latest ones
  // counts: a worker that had to read data, or was disturbed, is not slow.
  std::optional<double> Seconds(Fingerprint function) const {
    const auto it = recent_.find(function);
    if (it == recent_.end() || it->second.count < kObservations) return std::nullopt;
    return *std::min_element(it->second.seconds.begin(), it->second.seconds.end());
  }
  // It got nothing while another worker got a function. What is known of one that has been idle for
  // long is forgotten, so that it is tried again.
  void PassedOver() {
    if (++passed_over_ < kForget) return;
    passed_over_ = 0;
    recent_.clear();
  }

 private:
  static constexpr size_t kObservations = 3;
  static constexpr size_t kForget = 100;
  struct Recent {
    std::array<double, kObservations> seconds = {};
    size_t count = 0;
  };
  std::map<Fingerprint, Recent> recent_;
  size_t passed_over_ = 0;
};

}  // namespace mu
