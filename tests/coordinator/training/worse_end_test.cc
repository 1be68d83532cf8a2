#include "coordinator/training/worse_end.h"

#include <gtest/gtest.h>

#include <limits>

namespace mu {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// One evaluation after each epoch of 100 steps; the last one is the end.
std::string SaidOf(const std::string& metric, const std::vector<double>& values,
                   bool of_current = false) {
  std::vector<Evaluation> evaluations;
  for (const double value : values) {
    Evaluation evaluation;
    evaluation.epoch = static_cast<uint32_t>(evaluations.size()) + 1;
    evaluation.steps = 100 * evaluation.epoch;
    evaluation.metrics = {{metric, value}, {"other", 0}};
    evaluations.push_back(evaluation);
  }
  return DescribeWorseEnd(metric, evaluations, evaluations.back(), of_current);
}

TEST(WorseEnd, NamesBothWithTheirEpochsAndTheRemedy) {
  EXPECT_EQ(SaidOf("rmse", {0.9, 0.855, 0.86, 1.05}),
            "the last evaluation is worse than the best one: rmse is 1.0500 in epoch 4, after 400 "
            "steps, and was 0.8550 in epoch 2, after 200 steps; training.eval_every with "
            "early_stopping (restore_best) or checkpoint.keep_best keeps the best values");
}

TEST(WorseEnd, OfCurrentValuesTheRemedyNeedsCheckpoints) {
  const std::string said = SaidOf("rmse", {0.9, 0.855, 1.05});
  EXPECT_EQ(SaidOf("rmse", {0.9, 0.855, 1.05}, /*of_current=*/true),
            said + ", but needs evaluation.values: checkpoint instead of current");
  EXPECT_EQ(SaidOf("rmse", {0.9, 0.855}, /*of_current=*/true), "");
}

TEST(WorseEnd, OfEqualOnesTheFirstIsTheBest) {
  EXPECT_NE(SaidOf("rmse", {0.5, 0.5, 0.6}).find("was 0.5000 in epoch 1,"), std::string::npos);
}

TEST(WorseEnd, GoesByTheMetricsDirection) {
  EXPECT_EQ(SaidOf("auc", {0.6, 0.7}), "");
  EXPECT_NE(SaidOf("auc", {0.7, 0.6}), "");
  EXPECT_EQ(SaidOf("logloss", {0.7, 0.6}), "");
  EXPECT_NE(SaidOf("logloss", {0.6, 0.7}), "");
  EXPECT_NE(SaidOf("income.auc", {0.7, 0.6}), "") << "of one of several tasks";
}

TEST(WorseEnd, GoesByHalfAPercentOfSmallValuesToo) {
  EXPECT_NE(SaidOf("mae", {0.00101, 0.00104})
                .find("mae is 0.00104 in epoch 2, after 200 steps, and was 0.00101 in epoch 1,"),
            std::string::npos);
  EXPECT_NE(SaidOf("rmse", {0.000001, 0.000002}).find("rmse is 0.000002 in"), std::string::npos);
  EXPECT_EQ(SaidOf("mae", {0.00101, 0.001014}), "");
}

TEST(WorseEnd, SaysNothingWhereNothingIsSeenToBeWorse) {
  EXPECT_EQ(SaidOf("rmse", {0.5}), "") << "itself";
  EXPECT_EQ(SaidOf("auc", {0.7926, 0.7911}), "") << "as much as from one run to the next";
  EXPECT_NE(SaidOf("auc", {0.7926, 0.7876}), "");
  EXPECT_NE(SaidOf("rmse", {0, 0.001}), "");
  EXPECT_EQ(SaidOf("rmse", {kUndefined, 0.5}), "");
  EXPECT_EQ(SaidOf("rmse", {0.5, kUndefined}), "") << "has a warning of its own";
  EXPECT_NE(SaidOf("rmse", {0.5, kUndefined, 0.6}), "");
  EXPECT_EQ(DescribeWorseEnd("rmse", {}, Evaluation(), /*of_current=*/false), "");
  Evaluation end;
  end.metrics = {{"rmse", 0.5}};
  EXPECT_EQ(DescribeWorseEnd("rmse", {Evaluation()}, end, /*of_current=*/false), "")
      << "did not measure it";
}

}  // namespace
}  // namespace mu
