// Which checkpoints hold the best evaluations and therefore stay. Pure. Not thread safe.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/metric_set.h"

namespace mu {

struct KeepBestOptions {
  std::string metric;
  uint32_t count = 1;
  Better better = Better::kGreater;  // BetterOf(metric)
};

struct BestCheckpoint {
  std::string directory;
  double value = 0;
  uint64_t steps = 0;  // of the job
};

class BestCheckpoints {
 public:
  explicit BestCheckpoints(KeepBestOptions options, std::vector<BestCheckpoint> found = {})
      : options_(std::move(options)) {
    for (BestCheckpoint& checkpoint : found) Offer(std::move(checkpoint));
  }

  // Keeps it if it is one of the best `count`; of equal ones the earlier. Returns whether it is. A
  // value that is not finite never is.
  bool Offer(BestCheckpoint checkpoint) {
    if (!std::isfinite(checkpoint.value) || checkpoint.directory.empty()) return false;
    const auto behind = std::find_if(best_.begin(), best_.end(), [&](const BestCheckpoint& other) {
      return Improvement(options_.better, checkpoint.value, other.value) > 0;
    });
    const bool kept = static_cast<size_t>(behind - best_.begin()) < options_.count;
    best_.insert(behind, std::move(checkpoint));
    if (best_.size() > options_.count) best_.pop_back();
    return kept;
  }

  const std::vector<BestCheckpoint>& best() const { return best_; }  // the best first
  const KeepBestOptions& options() const { return options_; }

 private:
  KeepBestOptions options_;
  std::vector<BestCheckpoint> best_;
};

}  // namespace mu
