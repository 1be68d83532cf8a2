// How long the steps of each function have taken lately, on all workers. Pure: the times are handed
// in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"

namespace mu {

class StepTimes {
 public:
  void Observe(Fingerprint function, double seconds) {
    Recent& recent = recent_[function];
    if (recent.seconds.size() < kObservations) {
      recent.seconds.push_back(seconds);
    } else {
      recent.seconds[recent.next++ % kObservations] = seconds;
    }
  }
  // Seconds for a step; nothing before the first result.
  std::optional<double> Median(Fingerprint function) const {
    const auto it = recent_.find(function);
    if (it == recent_.end()) return std::nullopt;
    std::vector<double> seconds = it->second.seconds;
    const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
    std::nth_element(seconds.begin(), middle, seconds.end());
    return *middle;
  }

 private:
  static constexpr size_t kObservations = 64;
  struct Recent {
    std::vector<double> seconds;
    size_t next = 0;  // to be overwritten
  };
  std::map<Fingerprint, Recent> recent_;
};

}  // namespace mu
