// Accuracy, precision, recall and F1 of a binary classifier that says "1" from a threshold on.
// Mergeable; pure; not synchronised.
#pragma once

#include <cstdint>

#include "common/metrics/eval_records.h"

namespace mu {

class ThresholdMetrics {
 public:
  // A prediction counts as 1 if it is at least `threshold`.
  explicit ThresholdMetrics(double threshold) : threshold_(threshold) {}

  // As BinaryMetrics::Add.
  absl::Status Add(const EvalRecords& records);
  void Merge(const ThresholdMetrics& other);

  uint64_t count() const { return count_; }  // records
  double predicted_positive() const { return true_positive_ + false_positive_; }
  double positive() const { return true_positive_ + false_negative_; }
  double weight() const { return positive() + false_positive_ + true_negative_; }
  // NaN where they are not defined.
  double accuracy() const { return (true_positive_ + true_negative_) / weight(); }
  double precision() const { return true_positive_ / predicted_positive(); }
  double recall() const { return true_positive_ / positive(); }
  // The harmonic mean of both.
  double f1() const { return 2 * true_positive_ / (predicted_positive() + positive()); }

 private:
  double threshold_;
  uint64_t count_ = 0;
  double true_positive_ = 0;
  double false_positive_ = 0;
  double true_negative_ = 0;
  double false_negative_ = 0;
};

}  // namespace mu
