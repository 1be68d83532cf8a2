#include "common/metrics/regression_metrics.h"

#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/metrics/eval_records.h"

namespace mu {
namespace {

// Adds a * b without rounding.
void AddProduct(double a, double b, ExactSum* sum) {
  const double product = a * b;
  sum->Add(product);
  const double rounded_off = std::fma(a, b, -product);
  if (rounded_off != 0) sum->Add(rounded_off);
}

// Doubles that add up to the sum, but for what is 2^-150 of it.
std::array<double, 3> Parts(const ExactSum& sum) {
  std::array<double, 3> parts;
  ExactSum rest = sum;
  for (double& part : parts) {
    part = rest.Value();
    rest.Add(-part);
  }
  return parts;
}

}  // namespace

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
    const double weighted_label = weight * label;  // exact: both are float32
    labels_.Add(weighted_label);
    AddProduct(weighted_label, label, &label_squares_);
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
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (!(weight() > 0)) return kNan;
  // Where labels are far from 0, the three sums nearly cancel: nothing is rounded until they have.
  const double mean = label_sum() / weight();
  const double square = mean * mean, square_rounded_off = std::fma(mean, mean, -square);
  ExactSum distances = label_squares_;
  for (const double labels : Parts(labels_)) AddProduct(-2 * mean, labels, &distances);
  for (const double weights : Parts(weight_)) {
    AddProduct(square, weights, &distances);
    AddProduct(square_rounded_off, weights, &distances);
  }
  const double spread = distances.Value();
  // What is left where all labels are equal: the mean is off by less than 4 units of its last
  // place. Two float32 that differ do so by 2^26 times that.
  const double unit = 4 * std::numeric_limits<double>::epsilon() * mean;
  return spread > weight() * unit * unit ? 1 - squares_.Value() / spread : kNan;
}

std::map<std::string, double> RegressionMetrics::Values() const {
  return {{"rmse", rmse()}, {"mae", mae()}};
}

}  // namespace mu
