#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/hash.h"
#include "common/metrics/binary_metrics.h"
#include "common/metrics/regression_metrics.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;

// By definition: the share of (positive, negative) pairs in the right order, ties half.
double PairwiseAuc(const std::vector<float>& p, const std::vector<float>& y) {
  double good = 0, pairs = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    for (size_t j = 0; j < p.size(); ++j) {
      if (y[i] != 1 || y[j] != 0) continue;
      pairs += 1;
      good += p[i] > p[j] ? 1 : p[i] == p[j] ? 0.5 : 0;
    }
  }
  return good / pairs;
}

TEST(BinaryMetrics, AgreesWithTheDefinitions) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SplitMix random(seed);
    std::vector<float> p, y;
    double loss = 0, right = 0;
    for (int i = 0; i < 700; ++i) {
      const double logit = 6 * random.Unit() - 4;
      p.push_back(static_cast<float>(1 / (1 + std::exp(-logit))));
      if (seed % 2 == 1) p.back() = std::round(p.back() * 20) / 20;  // many ties
      y.push_back(random.Unit() < 1 / (1 + std::exp(-logit)) ? 1.0f : 0.0f);
      const double clipped = std::clamp<double>(p.back(), 1e-7, 1 - 1e-7);
      loss -= y.back() == 1 ? std::log(clipped) : std::log(1 - clipped);
      right += (p.back() >= 0.5f) == (y.back() == 1);
    }
    BinaryMetrics whole, left, rest;
    MU_ASSERT_OK(whole.Add(p, y));
    MU_ASSERT_OK(left.Add(absl::MakeSpan(p).first(300), absl::MakeSpan(y).first(300)));
    MU_ASSERT_OK(rest.Add(absl::MakeSpan(p).subspan(300), absl::MakeSpan(y).subspan(300)));
    left.Merge(rest);
    EXPECT_NEAR(whole.auc(), PairwiseAuc(p, y), 1e-4) << "seed " << seed;
    EXPECT_NEAR(whole.logloss(), loss / 700, 1e-9);
    EXPECT_EQ(whole.accuracy(), right / 700);
    EXPECT_EQ(left.auc(), whole.auc());
    EXPECT_EQ(left.count(), 700u);
  }
}

TEST(BinaryMetrics, RefusesWhatIsNoProbabilityAndAddsNothing) {
  BinaryMetrics metrics;
  EXPECT_THAT(metrics.Add({0.5f, NAN}, {1, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nan")));
  EXPECT_THAT(metrics.Add({1.5f}, {1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(metrics.Add({0.5f}, {3}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(metrics.Add({0.5f}, {1, 0}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(metrics.count(), 0u);
  MU_ASSERT_OK(metrics.Add({0, 1, 1}, {0, 1, 1}));
  EXPECT_EQ(metrics.auc(), 1.0);
  BinaryMetrics one_class;
  MU_ASSERT_OK(one_class.Add({0.5f}, {1}));
  EXPECT_TRUE(std::isnan(one_class.auc()));
}

TEST(RegressionMetrics, AgreesWithTheDefinitions) {
  RegressionMetrics a, b;
  MU_ASSERT_OK(a.Add({1, 2}, {1, 4}));
  MU_ASSERT_OK(b.Add({5}, {1}));
  a.Merge(b);
  EXPECT_DOUBLE_EQ(a.rmse(), std::sqrt((0 + 4 + 16) / 3.0));
  EXPECT_DOUBLE_EQ(a.mae(), 2.0);
  EXPECT_THAT(a.Add({INFINITY}, {1}), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(a.count(), 3u);
}

}  // namespace
}  // namespace mu
