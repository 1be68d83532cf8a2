#include "common/metrics/multi_class_metrics.h"

#include <algorithm>
#include <cmath>

#include "tests/common/metrics/records.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::MultiClassRecords;
using testing::Records;
using testing::StatusIs;

// The ranks, from 1, that a record's class has in one or another order of those that tie.
std::vector<int> Ranks(const Records& r, size_t record) {
  const auto row = r.predictions.begin() + static_cast<int64_t>(record) * r.per_record;
  const float own = row[r.classes[record]];
  int rank = 1 + static_cast<int>(
                     std::count_if(row, row + r.per_record, [own](float p) { return p > own; }));
  std::vector<int> ranks(static_cast<size_t>(std::count(row, row + r.per_record, own)));
  for (int& each : ranks) each = rank++;
  return ranks;
}

TEST(MultiClassMetrics, AgreesWithTheDefinitions) {
  for (const bool ties : {false, true}) {
    const Records r = MultiClassRecords(2, 500, 12, ties);
    MultiClassMetrics metrics;
    MU_ASSERT_OK(metrics.Add(r.All()));
    double first = 0, among_three = 0, loss = 0, reciprocal = 0, gain = 0, all = 0;
    for (size_t i = 0; i < r.size(); ++i) {
      const double weight = r.weights[i];
      const auto row = r.predictions.begin() + static_cast<int64_t>(i) * r.per_record;
      first += std::max_element(row, row + r.per_record) - row == r.classes[i] ? weight : 0;
      const std::vector<int> ranks = Ranks(r, i);
      for (const int rank : ranks) {
        const double share = weight / static_cast<double>(ranks.size());
        among_three += rank <= 3 ? share : 0;
        gain += rank <= 3 ? share / std::log2(1 + rank) : 0;
        reciprocal += share / rank;
      }
      loss -= weight * std::log(r.predictions[i * 12 + static_cast<size_t>(r.classes[i])]);
      all += weight;
    }
    EXPECT_EQ(metrics.accuracy(), first / all);
    EXPECT_NEAR(metrics.top_k_accuracy(3), among_three / all, 1e-12);
    EXPECT_EQ(metrics.top_k_accuracy(100), 1);
    EXPECT_NEAR(metrics.logloss(), loss / all, 1e-6);
    EXPECT_NEAR(metrics.ndcg(3), gain / all, 1e-12);
    EXPECT_NEAR(metrics.mrr(), reciprocal / all, 1e-12);
  }
}

// Whatever the true classes are: a random order puts each of n classes at each place as often.
TEST(MultiClassMetrics, AModelThatSaysNothingGetsWhatARandomOrderGets) {
  for (const size_t classes : {size_t{2}, size_t{10}, size_t{100}}) {
    const std::vector<float> uniform(classes, 1.0f / static_cast<float>(classes));
    double harmonic = 0;
    for (size_t rank = 1; rank <= classes; ++rank) harmonic += 1 / static_cast<double>(rank);
    MultiClassMetrics mostly_first;
    for (size_t label = 0; label < classes; ++label) {
      const std::vector<int64_t> own = {static_cast<int64_t>(label)};
      MultiClassMetrics one;
      MU_ASSERT_OK(one.Add({.predictions = uniform, .classes = own}));
      const double all = static_cast<double>(classes);
      EXPECT_DOUBLE_EQ(one.top_k_accuracy(1), 1 / all) << label;
      EXPECT_DOUBLE_EQ(one.top_k_accuracy(2), 2 / all) << label;
      EXPECT_NEAR(one.mrr(), harmonic / all, 1e-12) << label;
      EXPECT_NEAR(one.ndcg(2), (1 + 1 / std::log2(3.0)) / all, 1e-12) << label;
      EXPECT_EQ(one.top_k_accuracy(static_cast<int64_t>(classes)), 1) << label;
      EXPECT_EQ(one.accuracy(), label == 0 ? 1 : 0) << "it predicts the lowest class";
      mostly_first.Merge(one);
      for (int repeat = 0; label == 0 && repeat < 900; ++repeat) mostly_first.Merge(one);
    }
    EXPECT_NEAR(mostly_first.top_k_accuracy(2), 2 / static_cast<double>(classes), 1e-12);
    EXPECT_GT(mostly_first.accuracy(), 0.9);
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
