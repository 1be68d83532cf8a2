#include "common/metrics/regression_metrics.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace mu {

absl::Status RegressionMetrics::Add(absl::Span<const float> predictions,
                                    absl::Span<const float> labels) {
  if (predictions.size() != labels.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(predictions.size(), " predictions do not go with ", labels.size(), " labels"));
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    if (!std::isfinite(predictions[i]) || !std::isfinite(labels[i])) {
      return absl::InvalidArgumentError(absl::StrCat("a prediction of ", predictions[i],
                                                     " for a label of ", labels[i],
                                                     " is not finite; look at the model's output"));
    }
  }
  for (size_t i = 0; i < predictions.size(); ++i) {
    const double error = static_cast<double>(predictions[i]) - labels[i];
    squares_ += error * error;
    absolutes_ += std::fabs(error);
  }
  count_ += predictions.size();
  return absl::OkStatus();
}

void RegressionMetrics::Merge(const RegressionMetrics& other) {
  count_ += other.count_;
  squares_ += other.squares_;
  absolutes_ += other.absolutes_;
}

double RegressionMetrics::rmse() const { return std::sqrt(squares_ / static_cast<double>(count_)); }

double RegressionMetrics::mae() const { return absolutes_ / static_cast<double>(count_); }

std::map<std::string, double> RegressionMetrics::Values() const {
  return {{"rmse", rmse()}, {"mae", mae()}};
}

}  // namespace mu
