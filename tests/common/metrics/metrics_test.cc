// Binary and regression metrics against their definitions, by loops.
#include <algorithm>
#include <cmath>
#include <map>

#include "common/metrics/binary_metrics.h"
#include "common/metrics/regression_metrics.h"
#include "common/metrics/threshold_metrics.h"
#include "tests/common/metrics/records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::BinaryRecords;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::Records;
using testing::RegressionRecords;
using testing::StatusIs;

// The weighted share of (positive, negative) pairs in the right order, ties half.
double PairwiseAuc(const Records& r) {
  double good = 0, pairs = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    for (size_t j = 0; j < r.size(); ++j) {
      if (r.labels[i] != 1 || r.labels[j] != 0) continue;
      const double weight = r.All().weight(i) * r.All().weight(j);
      const float a = r.predictions[i], b = r.predictions[j];
      pairs += weight;
      good += weight * (a > b ? 1 : a == b ? 0.5 : 0);
    }
  }
  return good / pairs;
}

// Of those predicted as 1 from a threshold on.
struct Counted {
  double true_positive = 0, predicted = 0, positive = 0, right = 0, all = 0;
};
Counted Count(const Records& r, double threshold) {
  Counted counted;
  for (size_t i = 0; i < r.size(); ++i) {
    const double weight = r.All().weight(i);
    const bool one = r.predictions[i] >= threshold, is_one = r.labels[i] == 1;
    counted.true_positive += one && is_one ? weight : 0;
    counted.predicted += one ? weight : 0;
    counted.positive += is_one ? weight : 0;
    counted.right += one == is_one ? weight : 0;
    counted.all += weight;
  }
  return counted;
}

// Sum over the thresholds of precision times gain of recall.
double AveragePrecision(const Records& r) {
  std::map<float, int, std::greater<>> thresholds;
  for (const float p : r.predictions) thresholds[p] = 1;
  double area = 0, recall = 0;
  for (const auto& [threshold, unused] : thresholds) {
    const Counted counted = Count(r, threshold);
    if (counted.predicted == 0) continue;
    area += (counted.true_positive / counted.positive - recall) * counted.true_positive /
            counted.predicted;
    recall = counted.true_positive / counted.positive;
  }
  return area;
}

TEST(BinaryMetrics, AgreesWithTheDefinitions) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    Records r = BinaryRecords(seed, 400, /*ties=*/seed % 2 == 1);
    if (seed < 5) r.weights.clear();
    BinaryMetrics metrics;
    MU_ASSERT_OK(metrics.Add(r.predictions, r.labels, r.weights));
    double loss = 0, predicted = 0;
    for (size_t i = 0; i < r.size(); ++i) {
      const double p = std::clamp<double>(r.predictions[i], 1e-7, 1 - 1e-7);
      loss -= r.All().weight(i) * std::log(r.labels[i] == 1 ? p : 1 - p);
      predicted += r.All().weight(i) * r.predictions[i];
    }
    const Counted at_half = Count(r, 0.5);
    const double mean = at_half.positive / at_half.all;
    const double entropy = -(mean * std::log(mean) + (1 - mean) * std::log(1 - mean));
    EXPECT_NEAR(metrics.auc(), PairwiseAuc(r), 1e-9);
    EXPECT_NEAR(metrics.pr_auc(), AveragePrecision(r), 1e-9);
    EXPECT_NEAR(metrics.logloss(), loss / at_half.all, 1e-9);
    EXPECT_NEAR(metrics.normalized_entropy(), loss / at_half.all / entropy, 1e-9);
    EXPECT_NEAR(metrics.calibration(), predicted / at_half.positive, 1e-9);
    EXPECT_EQ(metrics.accuracy(), at_half.right / at_half.all);
    EXPECT_EQ(metrics.count(), 400u);
  }
}

// As early in training, and where almost all labels are 0.
TEST(BinaryMetrics, AreasAreExactForScoresThatAreCloseTogether) {
  const std::vector<std::pair<float, float>> pairs = {{0.5f, 0.50001f},
                                                      {1e-10f, 1e-9f},
                                                      {0.3f, std::nextafter(0.3f, 1.0f)},
                                                      {0.0f, 1e-40f},
                                                      {0.5f, std::nextafter(0.5f, 1.0f)},
                                                      {std::nextafter(1.0f, 0.0f), 1.0f}};
  for (const auto& [less, more] : pairs) {
    BinaryMetrics right, wrong;
    MU_ASSERT_OK(right.Add({less, more}, {0, 1}));
    MU_ASSERT_OK(wrong.Add({less, more}, {1, 0}));
    EXPECT_EQ(right.auc(), 1) << less;
    EXPECT_EQ(right.pr_auc(), 1) << less;
    EXPECT_EQ(wrong.auc(), 0) << less;
    EXPECT_EQ(wrong.pr_auc(), 0.5) << less;
  }
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    SplitMix random(seed);
    Records r = BinaryRecords(seed, 400, /*ties=*/seed % 2 == 1);
    if (seed < 5) r.weights.clear();
    // Log-odds of -3, but for a deviation of 1e-4 that says something about the label.
    for (size_t i = 0; i < r.size(); ++i) {
      const double deviation = 1e-4 * (r.predictions[i] + 0.2 * random.Unit());
      r.predictions[i] = static_cast<float>(1 / (1 + std::exp(3 - deviation)));
    }
    BinaryMetrics metrics;
    MU_ASSERT_OK(metrics.Add(r.predictions, r.labels, r.weights));
    EXPECT_NEAR(metrics.auc(), PairwiseAuc(r), 1e-9);
    EXPECT_NEAR(metrics.pr_auc(), AveragePrecision(r), 1e-9);
    EXPECT_GT(std::abs(metrics.auc() - 0.5), 0.05) << "the scores say nothing";
  }
}

TEST(BinaryMetrics, RefusesWhatIsNoProbabilityAndAddsNothing) {
  BinaryMetrics metrics;
  EXPECT_THAT(metrics.Add({0.5f, NAN}, {1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nan")));
  EXPECT_THAT(metrics.Add({1.5f}, {1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(metrics.Add({0.5f}, {3}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(metrics.Add({0.5f}, {1, 0}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(metrics.Add({0.5f}, {1}, {-1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("weight is -1")));
  EXPECT_THAT(metrics.Add({0.5f}, {1}, {1, 1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(metrics.count(), 0u);
  MU_ASSERT_OK(metrics.Add({0, 1, 1}, {0, 1, 1}));
  EXPECT_EQ(metrics.auc(), 1.0);
  EXPECT_EQ(metrics.pr_auc(), 1.0);
}

TEST(BinaryMetrics, IsNanWhereItIsNotDefined) {
  BinaryMetrics one_class;
  EXPECT_TRUE(std::isnan(one_class.logloss()));
  MU_ASSERT_OK(one_class.Add({0.5f}, {0}));
  EXPECT_TRUE(std::isnan(one_class.auc()));
  EXPECT_TRUE(std::isnan(one_class.pr_auc()));
  EXPECT_TRUE(std::isnan(one_class.normalized_entropy()));
  EXPECT_TRUE(std::isnan(one_class.calibration()));
  EXPECT_EQ(one_class.accuracy(), 0);
}

TEST(ThresholdMetrics, AgreesWithTheDefinitions) {
  for (const double threshold : {0.1, 0.5, 0.85}) {
    const Records r = BinaryRecords(3, 500, /*ties=*/true);
    ThresholdMetrics metrics(threshold);
    MU_ASSERT_OK(metrics.Add(r.All()));
    const Counted counted = Count(r, threshold);
    EXPECT_EQ(metrics.accuracy(), counted.right / counted.all);
    EXPECT_EQ(metrics.precision(), counted.true_positive / counted.predicted);
    EXPECT_EQ(metrics.recall(), counted.true_positive / counted.positive);
    EXPECT_NEAR(metrics.f1(), 2 / (1 / metrics.precision() + 1 / metrics.recall()), 1e-12);
  }
}

TEST(RegressionMetrics, R2IsNotDefinedWithoutSpread) {
  // Rounding leaves a spread of some of these, which are no sums of few powers of 2.
  for (const float label : {0.1f, 3.3f, 1000.1f, -7e-5f}) {
    for (size_t records = 1; records < 50; ++records) {
      const std::vector<float> labels(records, label), predictions(records, 3.0f);
      RegressionMetrics equal;
      MU_ASSERT_OK(equal.Add(predictions, labels));
      EXPECT_TRUE(std::isnan(equal.r2())) << records << " of " << label << ": " << equal.r2();
    }
  }
  // A spread that is small beside the mean is one.
  RegressionMetrics spread;
  MU_ASSERT_OK(spread.Add({1000, 1000, 1000, 1000}, {999.75f, 1000.25f, 999.5f, 1000.5f}));
  EXPECT_NEAR(spread.r2(), 0, 1e-6);
}

// Such as years, prices or times, whose mean is large beside their spread.
TEST(RegressionMetrics, R2IsTheSameForLabelsFarFromZero) {
  for (const size_t repeats : {size_t{1}, size_t{50'000}}) {
    for (const bool weighted : {false, true}) {
      const std::vector<float> weights =
          weighted ? std::vector<float>{0.1f, 0.7f, 1.3f, 0.3f} : std::vector<float>{};
      double near_zero = 0;
      for (const float shift : {0.0f, 1e6f, 1e7f, 1.6e7f, -1.6e7f}) {
        SCOPED_TRACE(shift);
        std::vector<float> labels, predictions;
        for (const float label : {0.0f, 1.0f, 2.0f, 3.0f}) labels.push_back(shift + label);
        for (const float label : {1.0f, 1.0f, 2.0f, 3.0f}) predictions.push_back(shift + label);
        RegressionMetrics metrics;
        for (size_t i = 0; i < repeats; ++i)
          MU_ASSERT_OK(metrics.Add(predictions, labels, weights));
        if (shift == 0) near_zero = metrics.r2();
        EXPECT_NEAR(metrics.r2(), near_zero, 1e-12);
        if (!weighted) EXPECT_DOUBLE_EQ(metrics.r2(), 0.8);
      }
    }
  }
}

TEST(RegressionMetrics, AgreesWithTheDefinitions) {
  const Records r = RegressionRecords(5, 300);
  RegressionMetrics metrics;
  MU_ASSERT_OK(metrics.Add(r.predictions, r.labels, r.weights));
  double squares = 0, absolutes = 0, predicted = 0, labels = 0, weights = 0;
  for (size_t i = 0; i < r.size(); ++i) {
    const double weight = r.weights[i], prediction = r.predictions[i], label = r.labels[i];
    squares += weight * (prediction - label) * (prediction - label);
    absolutes += weight * std::fabs(prediction - label);
    predicted += weight * prediction;
    labels += weight * label;
    weights += weight;
  }
  EXPECT_NEAR(metrics.rmse(), std::sqrt(squares / weights), 1e-12);
  EXPECT_NEAR(metrics.mae(), absolutes / weights, 1e-12);
  double spread = 0;
  for (size_t i = 0; i < r.size(); ++i)
    spread += r.weights[i] * std::pow(r.labels[i] - labels / weights, 2);
  EXPECT_NEAR(metrics.r2(), 1 - squares / spread, 1e-10);
  EXPECT_NEAR(metrics.calibration(), predicted / labels, 1e-12);
  EXPECT_THAT(metrics.Add({INFINITY}, {1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(metrics.count(), 300u);
}

}  // namespace
}  // namespace mu
