#include "common/metrics/regression_metrics.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/metrics/eval_records.h"

namespace mu {

absl::Status RegressionMetrics::Add(absl::Span<const float> predictions,
                                    absl::Span<const float> labels,
                                    absl::Span<const float> weights) {
  const EvalRecords records{.predictions = predictions, .labels = labels, .weights = weights};
  MU_RETURN_IF_ERROR(CheckSizes(records));
  MU_RETURN_IF_ERROR(CheckWeights(records));
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!std::isfinite(predictions[i]) || !std::isfinite(labels[i])) {
      return absl::InvalidArgumentError(absl::StrCat("a prediction of ", predictions[i],
                                                     " for a label of ", labels[i],
                                                     " is not finite; look at the model's output"));
    }
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double prediction = predictions[i], label = labels[i], weight = records.weight(i);
    const double error = prediction - label;
    weight_.Add(weight);
    squares_.Add(weight * error * error);
    absolutes_.Add(weight * std::fabs(error));
    predictions_.Add(weight * prediction);
    labels_.Add(weight * label);
    label_squares_.Add(weight * label * label);
  }
  count_ += predictions.size();
  return absl::OkStatus();
}

void RegressionMetrics::Merge(const RegressionMetrics& other) {
  count_ += other.count_;
  weight_.Merge(other.weight_);
  squares_.Merge(other.squares_);
  absolutes_.Merge(other.absolutes_);
  predictions_.Merge(other.predictions_);
  labels_.Merge(other.labels_);
  label_squares_.Merge(other.label_squares_);
}

double RegressionMetrics::rmse() const { return std::sqrt(squares_.Value() / weight()); }

double RegressionMetrics::mae() const { return absolutes_.Value() / weight(); }

double RegressionMetrics::calibration() const {
  const double labels = label_sum();
  return labels == 0 ? std::numeric_limits<double>::quiet_NaN() : predictions_.Value() / labels;
}

double RegressionMetrics::r2() const {
  const double labels = label_sum();
  const double spread = label_squares_.Value() - labels * labels / weight();
  // Rounding leaves something of the squares where nothing is spread.
  constexpr double kRounding = 1e-14;
  return spread > kRounding * label_squares_.Value() ? 1 - squares_.Value() / spread
                                                     : std::numeric_limits<double>::quiet_NaN();
}

std::map<std::string, double> RegressionMetrics::Values() const {
  return {{"rmse", rmse()}, {"mae", mae()}};
}

}  // namespace mu
