// Metrics of a binary classifier's probabilities. Mergeable, so that parts of a data set may be
// measured apart. Pure; not synchronised.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mu {

// The area under the ROC curve comes from a histogram of the log-odds with 2^17 buckets: memory
// stays the same for any number of records. Scores in one bucket count as equal (half a pair each),
// which moves the area by less than 1e-4.
class BinaryMetrics {
 public:
  BinaryMetrics();

  // `predictions` are probabilities, `labels` 0 or 1; both of the same length. INVALID_ARGUMENT for
  // a prediction that is NaN or outside [0, 1], or another label; nothing is added then.
  absl::Status Add(absl::Span<const float> predictions, absl::Span<const float> labels);
  void Merge(const BinaryMetrics& other);

  uint64_t count() const { return positives_ + negatives_; }
  // NaN where it is not defined: without records or, for the area, with one class only.
  double auc() const;
  double logloss() const;
  double accuracy() const;  // at 0.5
  // {"auc", "logloss", "accuracy"}
  std::map<std::string, double> Values() const;

 private:
  std::vector<uint64_t> positive_histogram_;
  std::vector<uint64_t> negative_histogram_;
  uint64_t positives_ = 0;
  uint64_t negatives_ = 0;
  uint64_t correct_ = 0;
  double log_loss_sum_ = 0;
};

}  // namespace mu
