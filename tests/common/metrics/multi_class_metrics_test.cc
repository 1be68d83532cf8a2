#include "common/metrics/multi_class_metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/common/metrics/records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::MultiClassRecords;
using testing::Records;
using testing::StatusIs;

// The classes of a record in the order of a stable sort by probability.
std::vector<int64_t> Order(const Records& r, size_t record) {
  std::vector<int64_t> order(static_cast<size_t>(r.per_record));
  std::iota(order.begin(), order.end(), 0);
  const float* row = &r.predictions[record * order.size()];
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return row[a] > row[b]; });
  return order;
}

TEST(MultiClassMetrics, AgreesWithTheDefinitions) {
  for (const bool ties : {false, true}) {
    const Records r = MultiClassRecords(2, 500, 12, ties);
    MultiClassMetrics metrics;
    MU_ASSERT_OK(metrics.Add(r.All()));
    double first = 0, among_three = 0, loss = 0, reciprocal = 0, gain = 0, all = 0;
    for (size_t i = 0; i < r.size(); ++i) {
      const double weight = r.weights[i];
      const std::vector<int64_t> order = Order(r, i);
      const auto rank = std::find(order.begin(), order.end(), r.classes[i]) - order.begin() + 1;
      first += rank == 1 ? weight : 0;
      among_three += rank <= 3 ? weight : 0;
      gain += rank <= 3 ? weight / std::log2(1 + static_cast<double>(rank)) : 0;
      reciprocal += weight / static_cast<double>(rank);
      loss -= weight * std::log(r.predictions[i * 12 + static_cast<size_t>(r.classes[i])]);
      all += weight;
    }
    EXPECT_EQ(metrics.accuracy(), first / all);
    EXPECT_EQ(metrics.top_k_accuracy(3), among_three / all);
    EXPECT_EQ(metrics.top_k_accuracy(100), 1);
    EXPECT_NEAR(metrics.logloss(), loss / all, 1e-6);
    EXPECT_NEAR(metrics.ndcg(3), gain / all, 1e-12);
    EXPECT_NEAR(metrics.mrr(), reciprocal / all, 1e-12);
  }
}

TEST(MultiClassMetrics, RefusesWhatIsNoSoftmaxAndAddsNothing) {
  MultiClassMetrics metrics;
  const auto add = [&](std::vector<float> predictions, std::vector<int64_t> classes) {
    return metrics.Add({.predictions = predictions, .classes = classes});
  };
  EXPECT_THAT(add({0.5f, 0.3f}, {0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("add up to 0.8")));
  EXPECT_THAT(add({2.5f, -1.5f}, {0}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(add({0.5f, 0.5f}, {2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("classes 0 to 1")));
  EXPECT_THAT(add({0.5f, 0.5f}, {-1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(add({0.5f, 0.5f, 1}, {0, 1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(metrics.count(), 0u);
  EXPECT_TRUE(std::isnan(metrics.accuracy()));
  MU_ASSERT_OK(add({}, {}));
  MU_ASSERT_OK(add({0.5f, 0.5f}, {1}));
  EXPECT_EQ(metrics.accuracy(), 0) << "of equals, the lowest class comes first";
  EXPECT_THAT(add({1, 0, 0}, {0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 classes after 2")));
}

}  // namespace
}  // namespace mu
