// Metrics of a regression. Mergeable, in any order and any cut with the same numbers to the last
// bit; pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/metrics/exact_sum.h"

namespace mu {

class RegressionMetrics {
 public:
  // All of the same length. INVALID_ARGUMENT for a prediction or label that is not finite, or a
  // negative weight; nothing is added then.
  absl::Status Add(absl::Span<const float> predictions, absl::Span<const float> labels,
                   absl::Span<const float> weights = {});
  void Merge(const RegressionMetrics& other);

  uint64_t count() const { return count_; }  // records
  double weight() const { return weight_.Value(); }
  double label_sum() const { return labels_.Value(); }
  // NaN without records, or where every weight is 0.
  double rmse() const;
  double mae() const;
  double calibration() const;  // mean prediction / mean label; NaN if that is 0
  double r2() const;  // 1 - squared errors / squared distances of the labels from their mean;
                      // NaN if all labels are equal
  // {"rmse", "mae"}
  std::map<std::string, double> Values() const;

 private:
  uint64_t count_ = 0;
  ExactSum weight_;
  ExactSum squares_;
  ExactSum absolutes_;
  ExactSum predictions_;
  ExactSum labels_;
  ExactSum label_squares_;
};

}  // namespace mu
