#include "coordinator/training/early_stopping.h"

#include <gmock/gmock.h>

#include "coordinator/training/best_checkpoints.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const double kUndefined = std::nan("");

TEST(EarlyStopping, StopsWhenNothingGetsBetterForSoLong) {
  EarlyStopping stopping({.metric = "auc", .patience = 2, .better = Better::kGreater});
  EXPECT_TRUE(stopping.Observe(0.5, 10, "a"));
  EXPECT_FALSE(stopping.Observe(0.5, 20, "b")) << "the same is not better";
  EXPECT_FALSE(stopping.stopped());
  EXPECT_TRUE(stopping.Observe(0.6, 30, "c"));
  EXPECT_FALSE(stopping.Observe(0.4, 40, "d"));
  EXPECT_FALSE(stopping.stopped());
  EXPECT_FALSE(stopping.Observe(0.55, 50, "e"));
  EXPECT_TRUE(stopping.stopped());
  EXPECT_EQ(stopping.state().best, 0.6);
  EXPECT_EQ(stopping.state().best_steps, 30u);
  EXPECT_EQ(stopping.state().best_checkpoint, "c");
}

TEST(EarlyStopping, GoesByTheMetricsDirection) {
  EarlyStopping loss({.metric = "logloss", .better = Better::kLess});
  EXPECT_TRUE(loss.Observe(0.7, 1, ""));
  EXPECT_TRUE(loss.Observe(0.6, 2, ""));
  EXPECT_FALSE(loss.Observe(0.65, 3, ""));
  EarlyStopping calibration({.metric = "calibration", .better = Better::kNearOne});
  EXPECT_TRUE(calibration.Observe(1.3, 1, ""));
  EXPECT_TRUE(calibration.Observe(0.8, 2, ""));
  EXPECT_FALSE(calibration.Observe(1.25, 3, ""));
}

TEST(EarlyStopping, AnImprovementMustBeLargeEnough) {
  EarlyStopping stopping({.metric = "rmse", .min_delta = 0.25, .better = Better::kLess});
  EXPECT_TRUE(stopping.Observe(2, 1, ""));
  EXPECT_FALSE(stopping.Observe(1.75, 2, "")) << "just min_delta";
  EXPECT_TRUE(stopping.Observe(1.5, 3, "")) << "since the best, not since the last";
}

TEST(EarlyStopping, WhatIsNotDefinedIsNoImprovement) {
  EarlyStopping stopping({.metric = "auc", .patience = 2});
  EXPECT_FALSE(stopping.Observe(kUndefined, 1, "a"));
  EXPECT_EQ(stopping.state().best_checkpoint, "");
  EXPECT_TRUE(stopping.Observe(0.1, 2, "b"));
  EXPECT_FALSE(stopping.Observe(kUndefined, 3, "c"));
  EXPECT_FALSE(stopping.Observe(kUndefined, 4, "d"));
  EXPECT_TRUE(stopping.stopped());
}

TEST(EarlyStopping, WithoutPatienceTrainingBeginsAllTheSame) {
  EarlyStopping stopping({.metric = "auc", .patience = 0});
  EXPECT_FALSE(stopping.stopped()) << "nothing was evaluated";
  EXPECT_TRUE(stopping.Observe(0.5, 1, "a"));
  EXPECT_FALSE(stopping.stopped());
  EXPECT_FALSE(stopping.Observe(0.5, 2, "b"));
  EXPECT_TRUE(stopping.stopped());
}

TEST(EarlyStopping, GoesOnFromItsState) {
  EarlyStopping first({.metric = "auc", .patience = 2});
  first.Observe(0.5, 1, "a");
  first.Observe(0.4, 2, "b");
  EarlyStopping second(first.options(), first.state());
  EXPECT_FALSE(second.stopped());
  second.Observe(0.45, 3, "c");
  EXPECT_TRUE(second.stopped());
  EXPECT_EQ(second.state().best_checkpoint, "a");
}

std::vector<std::string> Folders(const BestCheckpoints& best) {
  std::vector<std::string> folders;
  for (const BestCheckpoint& checkpoint : best.best()) folders.push_back(checkpoint.directory);
  return folders;
}

TEST(BestCheckpoints, KeepsTheBest) {
  BestCheckpoints best({.metric = "rmse", .count = 2, .better = Better::kLess});
  EXPECT_TRUE(best.Offer({"a", 3, 1}));
  EXPECT_TRUE(best.Offer({"b", 1, 2}));
  EXPECT_TRUE(best.Offer({"c", 2, 3}));
  EXPECT_THAT(Folders(best), ElementsAre("b", "c"));
  EXPECT_FALSE(best.Offer({"d", 2, 4})) << "of equal ones the earlier";
  EXPECT_FALSE(best.Offer({"e", kUndefined, 5}));
  EXPECT_FALSE(best.Offer({"", 0, 6})) << "no checkpoint was taken";
  EXPECT_THAT(Folders(best), ElementsAre("b", "c"));
}

TEST(BestCheckpoints, GoesOnWithFewerOrInAnotherDirection) {
  BestCheckpoints best({.metric = "rmse", .count = 3, .better = Better::kLess});
  for (const double value : {1, 2, 3})
    best.Offer({std::to_string(value)[0] + std::string(), value, 1});
  EXPECT_THAT(Folders(BestCheckpoints({.count = 1, .better = Better::kLess}, best.best())),
              ElementsAre("1"));
  EXPECT_THAT(Folders(BestCheckpoints({.count = 0, .better = Better::kLess}, best.best())),
              IsEmpty());
}

}  // namespace
}  // namespace mu
