// Metrics of a binary classifier's probabilities. Mergeable, so that parts of a data set may be
// measured apart. Pure; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/metrics/eval_records.h"
#include "common/metrics/exact_sum.h"
#include "common/metrics/score_histogram.h"

namespace mu {

// The areas under curves are exact for up to 2^20 different predictions. Beyond, those that share a
// bucket of ScoreHistogram count as equal (half a pair each), so memory stays bounded for any
// number of records.
//
// Merging in any order and any cut gives the same numbers to the last bit; with weights, as long as
// the sums of weights fit the 53 bits of a double, else to the last few bits.
class BinaryMetrics {
 public:
  // `predictions` are probabilities, `labels` 0 or 1; all of the same length. INVALID_ARGUMENT for
  // a prediction that is NaN or outside [0, 1], another label or a negative weight; nothing is
  // added then.
  absl::Status Add(absl::Span<const float> predictions, absl::Span<const float> labels,
                   absl::Span<const float> weights = {});
  void Merge(const BinaryMetrics& other);

  uint64_t count() const { return count_; }              // records
  double positive_weight() const { return positives_; }  // without weights: records
  double negative_weight() const { return negatives_; }

  // NaN where they are not defined: all without records, or where every weight is 0.
  double auc() const;     // also with one class only
  double pr_auc() const;  // average precision: the sum of precision times gain of recall
  double logloss() const;
  // Log loss divided by that of a model that always predicts the mean label (He et al., "Practical
  // lessons from predicting clicks on ads at Facebook", 2014, section 3); NaN with one class only.
  double normalized_entropy() const;
  double calibration() const;  // mean prediction / mean label; NaN without positives
  double accuracy() const;     // at 0.5
  // {"auc", "logloss", "accuracy"}
  std::map<std::string, double> Values() const;

 private:
  double weight() const { return positives_ + negatives_; }

  ScoreHistogram scores_;
  uint64_t count_ = 0;
  double positives_ = 0;
  double negatives_ = 0;
  double correct_ = 0;
  ExactSum log_loss_;
  ExactSum predictions_;
};

// INVALID_ARGUMENT unless every prediction is in [0, 1].
absl::Status CheckProbabilities(absl::Span<const float> predictions);
// INVALID_ARGUMENT unless every label is 0 or 1.
absl::Status CheckBinaryLabels(absl::Span<const float> labels);

}  // namespace mu
