#include "common/metrics/binary_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"

namespace mu {
namespace {

// As scikit-learn clips: a certain and wrong prediction costs much, not infinitely much.
constexpr double kLogLossEpsilon = 1e-7;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

absl::Status CheckProbabilities(absl::Span<const float> predictions) {
  for (const float prediction : predictions) {
    if (prediction >= 0 && prediction <= 1) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "a prediction is ", prediction, ", which is no probability; look at the model's output"));
  }
  return absl::OkStatus();
}

absl::Status CheckBinaryLabels(absl::Span<const float> labels) {
  for (const float label : labels) {
    if (label == 0 || label == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("a label is ", label,
                     "; a classifier's labels are 0 and 1: name the texts that "
                     "mean 1 in `positive`, or, of more than two classes, all in `classes`"));
  }
  return absl::OkStatus();
}

absl::Status BinaryMetrics::Add(absl::Span<const float> predictions, absl::Span<const float> labels,
                                absl::Span<const float> weights) {
  const EvalRecords records{.predictions = predictions, .labels = labels, .weights = weights};
  MU_RETURN_IF_ERROR(CheckSizes(records));
  MU_RETURN_IF_ERROR(CheckProbabilities(predictions));
  MU_RETURN_IF_ERROR(CheckBinaryLabels(labels));
  MU_RETURN_IF_ERROR(CheckWeights(records));
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double p = predictions[i];
    const double weight = records.weight(i);
    const bool positive = labels[i] == 1;
    scores_.Add(predictions[i], positive, static_cast<float>(weight));
    (positive ? positives_ : negatives_) += weight;
    if ((p >= 0.5) == positive) correct_ += weight;
    const double clipped = std::clamp(p, kLogLossEpsilon, 1 - kLogLossEpsilon);
    log_loss_.Add(-weight * std::log(positive ? clipped : 1 - clipped));
    predictions_.Add(weight * p);
  }
  count_ += predictions.size();
  return absl::OkStatus();
}

void BinaryMetrics::Merge(const BinaryMetrics& other) {
  scores_.Merge(other.scores_);
  count_ += other.count_;
  positives_ += other.positives_;
  negatives_ += other.negatives_;
  correct_ += other.correct_;
  log_loss_.Merge(other.log_loss_);
  predictions_.Merge(other.predictions_);
}

double BinaryMetrics::auc() const {
  if (positives_ == 0 || negatives_ == 0) return kNan;
  // Pairs of a positive above a negative, and half of those in the same bucket.
  double pairs = 0, negatives_below = 0;
  for (const ScoreHistogram::Bucket& bucket : scores_.Buckets()) {
    pairs += bucket.positives * (negatives_below + 0.5 * bucket.negatives);
    negatives_below += bucket.negatives;
  }
  return pairs / positives_ / negatives_;
}

double BinaryMetrics::pr_auc() const {
  if (positives_ == 0) return kNan;
  double area = 0, positives_above = 0, negatives_above = 0;
  const std::vector<ScoreHistogram::Bucket> buckets = scores_.Buckets();
  for (size_t i = buckets.size(); i-- > 0;) {
    positives_above += buckets[i].positives;
    negatives_above += buckets[i].negatives;
    if (buckets[i].positives == 0) continue;
    area += buckets[i].positives * positives_above / (positives_above + negatives_above);
  }
  return area / positives_;
}

double BinaryMetrics::logloss() const { return log_loss_.Value() / weight(); }

double BinaryMetrics::normalized_entropy() const {
  if (positives_ == 0 || negatives_ == 0) return kNan;
  const double p = positives_ / weight();
  return logloss() / -(p * std::log(p) + (1 - p) * std::log(1 - p));
}

double BinaryMetrics::calibration() const {
  return positives_ == 0 ? kNan : predictions_.Value() / positives_;
}

double BinaryMetrics::accuracy() const { return correct_ / weight(); }

std::map<std::string, double> BinaryMetrics::Values() const {
  return {{"auc", auc()}, {"logloss", logloss()}, {"accuracy", accuracy()}};
}

}  // namespace mu
