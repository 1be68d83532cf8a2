#include "coordinator/training/training_history.h"

#include <gmock/gmock.h>

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

Evaluation At(uint64_t steps, double auc, const std::string& checkpoint) {
  return {.steps = steps,
          .epoch = 2,
          .seconds = 0.125,
          .examples = 100,
          .metrics = {{"auc", auc}, {"logloss", 1 - auc}},
          .best_so_far = auc > 0.5,
          .checkpoint = checkpoint};
}

TEST(TrainingHistory, ComesBackAsItWas) {
  TrainingHistory history;
  history.AddLoss(1, 1.0 / 3, 10);
  history.AddLoss(1, 0.1, 20);
  history.AddLoss(2, 0.7, 5);
  history.AddEvaluation(At(10, 0.75, "ckpt-00000001"));
  history.AddEvaluation(At(20, std::nan(""), ""));
  EarlyStopping stopping({.metric = "auc", .patience = 7});
  stopping.Observe(0.1 + 0.2, 10, "ckpt-00000001");
  stopping.Observe(0.2, 20, "");
  history.SetEarlyStopping(stopping);
  BestCheckpoints best({.metric = "logloss", .count = 2, .better = Better::kLess});
  best.Offer({"ckpt-00000001", 0.25, 10});
  history.SetBest(best);
  EXPECT_EQ(history.EvaluatedSteps(), 20u);
  history.SetPending(PendingEvaluation{"ckpt-00000003", 30, 3});

  EXPECT_THAT(history.Checkpoints({}), ElementsAre("ckpt-00000003"));

  const TrainingHistory again = TrainingHistory::Parse(history.ToString());
  EXPECT_EQ(again.ToString(), history.ToString());
  ASSERT_THAT(again.epochs(), SizeIs(2));
  EXPECT_EQ(again.epochs()[0].loss_sum, 1.0 / 3 * 10 + 0.1 * 20);
  EXPECT_EQ(again.epochs()[0].samples, 30u);
  EXPECT_DOUBLE_EQ(again.epochs()[1].loss(), 0.7);
  ASSERT_THAT(again.evaluations(), SizeIs(2));
  const Evaluation& first = again.evaluations()[0];
  EXPECT_EQ(first.steps, 10u);
  EXPECT_EQ(first.epoch, 2u);
  EXPECT_EQ(first.seconds, 0.125);
  EXPECT_EQ(first.examples, 100u);
  EXPECT_EQ(first.metrics.at("auc"), 0.75);
  EXPECT_TRUE(first.best_so_far);
  EXPECT_EQ(first.checkpoint, "ckpt-00000001");
  EXPECT_TRUE(std::isnan(again.evaluations()[1].metrics.at("auc")));
  EXPECT_FALSE(again.evaluations()[1].best_so_far);
  const EarlyStoppingState state = again.EarlyStoppingWith({.metric = "auc"}).state();
  EXPECT_EQ(state.best, 0.1 + 0.2);
  EXPECT_EQ(state.best_steps, 10u);
  EXPECT_EQ(state.best_checkpoint, "ckpt-00000001");
  EXPECT_EQ(state.waits, 1u);
  EXPECT_EQ(state.seen_steps, 20u);
  const auto kept = again.BestWith({.metric = "logloss", .better = Better::kLess}).best();
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].directory, "ckpt-00000001");
  EXPECT_EQ(kept[0].value, 0.25);
  EXPECT_EQ(kept[0].steps, 10u);
  ASSERT_TRUE(again.pending().has_value());
  EXPECT_EQ(again.pending()->checkpoint, "ckpt-00000003");
  EXPECT_EQ(again.pending()->steps, 30u);
  EXPECT_EQ(again.pending()->epoch, 3u);
  EXPECT_EQ(again.EvaluatedSteps(), 30u);
}

TEST(TrainingHistory, AnEvaluationOfTheSameStepsTakesThePlaceOfTheLastOne) {
  TrainingHistory history;
  history.AddEvaluation(At(10, 0.75, "a"));
  history.AddEvaluation(At(20, 0.5, "b"));
  history.ToString();
  Evaluation again = At(20, 0.8, "c");
  again.measured_here = true;
  history.AddEvaluation(again);
  ASSERT_THAT(history.evaluations(), SizeIs(2));
  EXPECT_TRUE(history.evaluations()[1].measured_here);
  const TrainingHistory later = TrainingHistory::Parse(history.ToString());
  ASSERT_THAT(later.evaluations(), SizeIs(2));
  EXPECT_EQ(later.evaluations()[0].steps, 10u);
  EXPECT_EQ(later.evaluations()[1].checkpoint, "c");
  EXPECT_FALSE(later.evaluations()[1].measured_here) << "another process reads it";
}

TEST(TrainingHistory, EarlierVersionsHadSeenTheLastEvaluation) {
  const std::string text =
      R"(epoch=1 loss_sum=1 loss_weight=2 {"evaluations": [{"steps": 10}, {"steps": 20}], )"
      R"("early_stopping": {"metric": "auc", "best": 0.5, "best_steps": 10, "waits": 1}})";
  const EarlyStopping stopping = TrainingHistory::Parse(text).EarlyStoppingWith({.metric = "auc"});
  EXPECT_EQ(stopping.state().waits, 1u);
  EXPECT_EQ(stopping.state().seen_steps, 20u);
}

TEST(TrainingHistory, KnowsWhetherTheCurrentValuesAreEvaluated) {
  for (const bool current : {false, true}) {
    TrainingHistory history;
    history.SetPending(PendingEvaluation{"", 30, 3, current});
    const TrainingHistory again = TrainingHistory::Parse(history.ToString());
    ASSERT_TRUE(again.pending().has_value());
    EXPECT_EQ(again.pending()->current, current);
    EXPECT_EQ(again.EvaluatedSteps(), 30u);
    EXPECT_TRUE(again.Checkpoints({}).empty());
  }
}

TEST(TrainingHistory, KnowsTheEvaluationThatIsUnderWay) {
  TrainingHistory history;
  EXPECT_EQ(history.EvaluatedSteps(), 0u);
  const std::string nothing = history.ToString();
  history.SetPending(PendingEvaluation{"ckpt-00000001", 30, 3});
  EXPECT_NE(history.ToString(), nothing);
  history.SetPending(std::nullopt);
  EXPECT_EQ(history.ToString(), nothing);
}

TEST(TrainingHistory, KnowsWhatWasBroughtBackUntilTrainingGoesOn) {
  TrainingHistory history;
  history.AddLoss(9, 0.5, 1);
  history.ToString();
  history.SetBroughtBack({.steps = 30, .epoch = 3});
  TrainingHistory again = TrainingHistory::Parse(history.ToString());
  ASSERT_TRUE(again.brought_back().has_value());
  EXPECT_EQ(again.brought_back()->steps, 30u);
  EXPECT_EQ(again.brought_back()->epoch, 3u);
  again.AddLoss(9, 0.5, 1);
  EXPECT_FALSE(TrainingHistory::Parse(again.ToString()).brought_back().has_value());
}

// The text of a job with one epoch is what earlier versions wrote.
TEST(TrainingHistory, ReadsWhatEarlierVersionsWrote) {
  const std::string text = "epoch=3 loss_sum=12.5 loss_weight=25";
  const TrainingHistory history = TrainingHistory::Parse(text);
  ASSERT_THAT(history.epochs(), SizeIs(1));
  EXPECT_EQ(history.epochs()[0].epoch, 3u);
  EXPECT_EQ(history.epochs()[0].loss(), 0.5);
  EXPECT_EQ(history.ToString(), text);
  EXPECT_THAT(TrainingHistory::Parse("").epochs(), SizeIs(0));
  EXPECT_THAT(TrainingHistory::Parse("a program's own state").epochs(), SizeIs(0));
  EXPECT_THAT(TrainingHistory::Parse("{\"epochs\": 7, \"evaluations\": [1]").evaluations(),
              SizeIs(0));
}

TEST(TrainingHistory, LateResultsCountInTheirEpoch) {
  TrainingHistory history;
  history.AddLoss(2, 4, 1);
  history.ToString();
  history.AddLoss(1, 2, 1);
  history.AddLoss(1, 4, 1);
  ASSERT_THAT(history.epochs(), SizeIs(2));
  EXPECT_EQ(history.epochs()[0].loss(), 3);
  EXPECT_EQ(TrainingHistory::Parse(history.ToString()).epochs()[0].loss(), 3)
      << "what is written is not what was known before";
}

TEST(TrainingHistory, OldOnesAreForgotten) {
  TrainingHistory history;
  const auto most = static_cast<uint32_t>(TrainingHistory::kMostListed);
  for (uint32_t i = 1; i <= most + 5; ++i) {
    history.AddLoss(i, i, 1);
    history.AddEvaluation(At(i, 0.5, ""));
  }
  history.AddLoss(3, 7, 1);
  EXPECT_THAT(history.epochs(), SizeIs(most));
  EXPECT_EQ(history.epochs().front().epoch, 6u);
  EXPECT_THAT(history.evaluations(), SizeIs(most));
  EXPECT_EQ(history.evaluations().front().steps, 6u);
}

// Of another metric than before: as if it had seen what is listed.
TEST(TrainingHistory, EarlyStoppingByAnotherMetric) {
  TrainingHistory history;
  history.AddEvaluation(At(10, 0.75, "a"));
  history.AddEvaluation(At(20, 0.5, "b"));
  history.SetEarlyStopping(EarlyStopping({.metric = "auc"}, {0.9, 5, "other", 2}));
  const EarlyStopping stopping =
      history.EarlyStoppingWith({.metric = "logloss", .better = Better::kLess});
  EXPECT_EQ(stopping.state().best, 0.25);
  EXPECT_EQ(stopping.state().best_checkpoint, "a");
  EXPECT_EQ(stopping.state().waits, 1u);
  EXPECT_EQ(history.EarlyStoppingWith({.metric = "auc"}).state().best, 0.9);
}

// A metric that was not asked for is no metric that was not defined.
TEST(TrainingHistory, EvaluationsWithoutTheMetricAreNotSeen) {
  TrainingHistory history;
  history.AddEvaluation(At(10, 0.75, "a"));
  history.AddEvaluation(At(20, 0.5, "b"));
  const EarlyStopping other = history.EarlyStoppingWith({.metric = "gauc", .patience = 1});
  EXPECT_FALSE(other.stopped());
  EXPECT_EQ(other.state().waits, 0u);
  history.AddEvaluation(At(30, std::nan(""), "c"));
  EXPECT_EQ(history.EarlyStoppingWith({.metric = "auc"}).state().waits, 2u);
}

TEST(TrainingHistory, EarlyStoppingByThoseThatCanBeGoneBackTo) {
  TrainingHistory history;
  history.AddEvaluation(At(10, 0.9, "a"));
  history.AddEvaluation(At(20, 0.5, "b"));
  history.AddEvaluation(At(30, 0.8, ""));
  history.AddEvaluation(At(40, 0.7, "d"));
  history.AddEvaluation(At(50, 0.6, "e"));
  history.SetEarlyStopping(EarlyStopping({.metric = "auc"}, {0.9, 10, "a", 4}));
  const EarlyStoppingState state =
      history.EarlyStoppingOf({.metric = "auc"}, {"b", "d", "e", "other"}).state();
  EXPECT_EQ(state.best, 0.7);
  EXPECT_EQ(state.best_steps, 40u);
  EXPECT_EQ(state.best_checkpoint, "d");
  EXPECT_EQ(state.waits, 1u);
  EXPECT_EQ(history.EarlyStoppingOf({.metric = "auc"}, {}).state().waits, 0u);
  // Nothing to go back to either.
  history.AddEvaluation(At(60, std::nan(""), "f"));
  const EarlyStopping nothing = history.EarlyStoppingOf({.metric = "auc", .patience = 1}, {"f"});
  EXPECT_TRUE(std::isnan(nothing.state().best));
  EXPECT_FALSE(nothing.stopped());
}

// It sees all that is listed when the job uses it again.
TEST(TrainingHistory, EarlyStoppingThatWasNotUsedForAWhile) {
  TrainingHistory history;
  history.AddEvaluation(At(10, 0.75, "a"));
  history.SetEarlyStopping(EarlyStopping({.metric = "auc"}, {0.75, 10, "a", 0}));
  history.SetEarlyStopping(std::nullopt);
  history.AddEvaluation(At(20, 0.8, "b"));
  const TrainingHistory again = TrainingHistory::Parse(history.ToString());
  EXPECT_EQ(again.EarlyStoppingWith({.metric = "auc"}).state().best_checkpoint, "b");
}

TEST(TrainingHistory, OfTheBestThoseThatAreGoneAreForgotten) {
  TrainingHistory history;
  EXPECT_THAT(history.ForgetBestBut({"a"}), SizeIs(0));
  BestCheckpoints best({.metric = "auc", .count = 3});
  best.Offer({"a", 0.5, 10});
  best.Offer({"b", 0.7, 20});
  best.Offer({"c", 0.6, 30});
  history.SetBest(best);
  history.ToString();
  const std::vector<BestCheckpoint> gone = history.ForgetBestBut({"c", "a", "other"});
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].directory, "b");
  EXPECT_EQ(gone[0].steps, 20u);
  const auto left =
      TrainingHistory::Parse(history.ToString()).BestWith({.metric = "auc", .count = 1}).best();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].directory, "c");
}

}  // namespace
}  // namespace mu
