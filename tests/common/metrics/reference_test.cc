// The metrics against scikit-learn's (tests/reference/metric_values.py).
#include "common/metrics/metric_set.h"
#include "tests/common/metrics/reference_values.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

namespace reference = testing::reference;

void Compare(Task task, const EvalRecords& records, const std::map<std::string, double>& expected) {
  std::vector<std::string> names;
  for (const auto& [name, value] : expected) names.push_back(name);
  MU_ASSERT_OK_AND_ASSIGN(MetricSet set, MetricSet::Create(task, names, /*has_group=*/true));
  MU_ASSERT_OK(set.Add(records));
  for (const MetricValue& metric : set.Values())
    EXPECT_NEAR(metric.value, expected.at(metric.name), 1e-6) << metric.name;
}

TEST(MetricReference, Binary) {
  Compare(Task::kBinaryClassification,
          {.predictions = reference::kProbabilities,
           .labels = reference::kLabels,
           .groups = reference::kGroups},
          reference::kBinary);
}

TEST(MetricReference, BinaryWithWeights) {
  Compare(Task::kBinaryClassification,
          {.predictions = reference::kProbabilities,
           .labels = reference::kLabels,
           .weights = reference::kWeights},
          reference::kBinaryWeighted);
}

TEST(MetricReference, MultiClass) {
  Compare(Task::kMultiClass, {.predictions = reference::kSoftmax, .classes = reference::kClasses},
          reference::kMultiClass);
}

TEST(MetricReference, Regression) {
  Compare(Task::kRegression, {.predictions = reference::kGuess, .labels = reference::kTruth},
          reference::kRegression);
}

}  // namespace
}  // namespace mu
