// Metrics of a regression. Mergeable; pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mu {

class RegressionMetrics {
 public:
  // Both of the same length. INVALID_ARGUMENT for a prediction or label that is not finite; nothing
  // is added then.
  absl::Status Add(absl::Span<const float> predictions, absl::Span<const float> labels);
  void Merge(const RegressionMetrics& other);

  uint64_t count() const { return count_; }
  // NaN without records.
  double rmse() const;
  double mae() const;
  // {"rmse", "mae"}
  std::map<std::string, double> Values() const;

 private:
  uint64_t count_ = 0;
  double squares_ = 0;
  double absolutes_ = 0;
};

}  // namespace mu
