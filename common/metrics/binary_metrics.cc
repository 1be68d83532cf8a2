#include "common/metrics/binary_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace mu {
namespace {

constexpr size_t kBuckets = size_t{1} << 17;
constexpr double kMaxLogOdds = 20.0;  // a float32 probability has no finer steps beyond
// As scikit-learn clips: a certain and wrong prediction costs much, not infinitely much.
constexpr double kLogLossEpsilon = 1e-7;

size_t BucketOf(double probability) {
  if (probability <= 0) return 0;
  if (probability >= 1) return kBuckets - 1;
  const double log_odds =
      std::clamp(std::log(probability / (1 - probability)), -kMaxLogOdds, kMaxLogOdds);
  return static_cast<size_t>((log_odds + kMaxLogOdds) / (2 * kMaxLogOdds) *
                             static_cast<double>(kBuckets - 1));
}

}  // namespace

BinaryMetrics::BinaryMetrics() : positive_histogram_(kBuckets), negative_histogram_(kBuckets) {}

absl::Status BinaryMetrics::Add(absl::Span<const float> predictions,
                                absl::Span<const float> labels) {
  if (predictions.size() != labels.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(predictions.size(), " predictions do not go with ", labels.size(), " labels"));
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!(predictions[i] >= 0 && predictions[i] <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a prediction is ", predictions[i],
                       ", which is no probability; look at the model's output"));
    }
    if (labels[i] != 0 && labels[i] != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a label is ", labels[i], "; a classifier's labels are 0 and 1"));
    }
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double p = predictions[i];
    const bool positive = labels[i] == 1;
    ++(positive ? positive_histogram_ : negative_histogram_)[BucketOf(p)];
    ++(positive ? positives_ : negatives_);
    correct_ += (p >= 0.5) == positive ? 1 : 0;
    const double clipped = std::clamp(p, kLogLossEpsilon, 1 - kLogLossEpsilon);
    log_loss_sum_ -= std::log(positive ? clipped : 1 - clipped);
  }
  return absl::OkStatus();
}

void BinaryMetrics::Merge(const BinaryMetrics& other) {
  for (size_t i = 0; i < kBuckets; ++i) {
    positive_histogram_[i] += other.positive_histogram_[i];
    negative_histogram_[i] += other.negative_histogram_[i];
  }
  positives_ += other.positives_;
  negatives_ += other.negatives_;
  correct_ += other.correct_;
  log_loss_sum_ += other.log_loss_sum_;
}

double BinaryMetrics::auc() const {
  if (positives_ == 0 || negatives_ == 0) return std::numeric_limits<double>::quiet_NaN();
  // Pairs of a positive above a negative, and half of those in the same bucket.
  double pairs = 0, negatives_below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const double negatives = static_cast<double>(negative_histogram_[i]);
    pairs += static_cast<double>(positive_histogram_[i]) * (negatives_below + 0.5 * negatives);
    negatives_below += negatives;
  }
  return pairs / static_cast<double>(positives_) / static_cast<double>(negatives_);
}

double BinaryMetrics::logloss() const { return log_loss_sum_ / static_cast<double>(count()); }

double BinaryMetrics::accuracy() const {
  return static_cast<double>(correct_) / static_cast<double>(count());
}

std::map<std::string, double> BinaryMetrics::Values() const {
  return {{"auc", auc()}, {"logloss", logloss()}, {"accuracy", accuracy()}};
}

}  // namespace mu
