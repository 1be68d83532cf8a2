// Best evaluations that cannot be gone back to: no checkpoint was taken for them, or it was deleted
// since nobody needed it then, or by somebody else, or it is damaged.
#include <gmock/gmock.h>

#include <atomic>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using testing::kRecords;
using testing::kSum;
using ::testing::SizeIs;

class BestThatIsGoneTest : public EvaluatedJobTest {
 protected:
  TrainerOptions WithWarnings() {
    TrainerOptions options = Options();
    options.callbacks.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    return options;
  }
  // Each evaluation, of a checkpoint, is better than the one before by "mae" and worse by "rmse".
  TrainerOptions BetterAndWorse() {
    TrainerOptions options = WithWarnings();
    options.evaluation->metrics = {"mae", "rmse"};
    options.evaluate_checkpoint = [this](const std::string&, const std::atomic<int>*,
                                         std::vector<std::string>*) -> absl::StatusOr<Evaluation> {
      Evaluation evaluation;
      evaluation.examples = kRecords;
      evaluation.metrics["mae"] = 1.0 / ++evaluated_;
      evaluation.metrics["rmse"] = evaluated_;
      return evaluation;
    };
    return options;
  }
  // Six epochs, each evaluated. Returns the first epoch whose checkpoint is still there, from 1.
  uint32_t TrainSix(FitOptions fit) {
    fit.epochs = 6;
    fit.eval_every = {.epochs = 1};
    Trainer trainer(&c(), BetterAndWorse());
    const absl::StatusOr<FitResult> result = trainer.Fit(fit);
    MU_EXPECT_OK(result.status());
    MU_EXPECT_OK(trainer.Save().status());
    if (!result.ok()) return 0;
    EXPECT_THAT(result->evaluations, SizeIs(6));
    for (const Evaluation& evaluation : result->evaluations) {
      if (FileExists(JoinPath(trainer.PathOf(evaluation.checkpoint), kManifestName)))
        return evaluation.epoch;
    }
    return 0;
  }

  std::vector<std::string> warnings_;

 private:
  int evaluated_ = 0;  // by one thread at a time
};

// The best by the new metric is the first one, which nobody has kept.
TEST_F(BestThatIsGoneTest, EarlyStoppingGoesOnByAnotherMetric) {
  const uint32_t first =
      TrainSix({.early_stopping = EarlyStoppingOptions{.metric = "mae", .patience = 50}});
  ASSERT_GT(first, 1u) << "the first one should be gone";
  ASSERT_NO_FATAL_FAILURE(Restart());
  Trainer trainer(&c(), BetterAndWorse());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit(
          {.epochs = 8, .early_stopping = EarlyStoppingOptions{.metric = "rmse", .patience = 50}}));
  EXPECT_THAT(result.evaluations, SizeIs(8));
  EXPECT_FALSE(result.stopped_early);
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(result.early_stopping->best_steps, 10 * first);
  EXPECT_EQ(result.early_stopping->waits, 8 - first);
  EXPECT_EQ(Sum(), first * kSum);
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("by rmse (1.0000 after 10 steps) cannot be brought back"),
                                HasSubstr("is not there any more"),
                                HasSubstr(absl::StrCat(" after ", 10 * first, " steps")))));
  MU_EXPECT_OK(trainer.Save().status());
}

TEST_F(BestThatIsGoneTest, EarlyStoppingIsAddedToEvaluationsOfCheckpoints) {
  const uint32_t first = TrainSix({});
  ASSERT_GT(first, 1u) << "the first one should be gone";
  ASSERT_NO_FATAL_FAILURE(Restart());
  Trainer trainer(&c(), BetterAndWorse());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 400,
                   .early_stopping = EarlyStoppingOptions{.metric = "rmse", .patience = 4}}));
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(result.early_stopping->waits, 4u);
  EXPECT_THAT(result.evaluations, SizeIs(first + 4)) << "it was not over before";
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(result.early_stopping->best_steps, 10 * first);
  EXPECT_EQ(Sum(), first * kSum);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is not there any more")));
}

// Whose best is that of epoch 3. A later start does not begin anew once more.
TEST_F(BestThatIsGoneTest, EarlyStoppingIsAddedToEvaluationsWithoutCheckpoints) {
  const auto epochs = [this](uint32_t number, FitOptions fit) -> absl::StatusOr<FitResult> {
    fit.epochs = number;
    fit.eval_every = {.epochs = 1};
    Trainer trainer(&c(), WithWarnings());
    MU_ASSIGN_OR_RETURN(FitResult result, trainer.Fit(fit));
    MU_RETURN_IF_ERROR(trainer.Save().status());
    return result;
  };
  const FitOptions stopping = {.early_stopping =
                                   EarlyStoppingOptions{.metric = "mae", .patience = 2}};
  MU_ASSERT_OK(epochs(5, {}).status());
  ASSERT_NO_FATAL_FAILURE(Restart());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult second, epochs(7, stopping));
  EXPECT_FALSE(second.stopped_early);
  EXPECT_THAT(second.evaluations, SizeIs(7));
  EXPECT_EQ(second.early_stopping->best_steps, 60u);
  EXPECT_TRUE(second.restored_best);
  EXPECT_EQ(Sum(), 6 * kSum);
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("by mae (0.0000 after 30 steps) cannot be brought back"),
                                HasSubstr("no checkpoint was taken"),
                                HasSubstr("by the evaluations from now on"))));
  ASSERT_NO_FATAL_FAILURE(Restart());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult third, epochs(20, stopping));
  EXPECT_TRUE(third.stopped_early);
  EXPECT_EQ(third.early_stopping->best_steps, 60u);
  EXPECT_EQ(Sum(), 6 * kSum);
  ASSERT_THAT(warnings_, SizeIs(2));
  EXPECT_THAT(warnings_[1],
              AllOf(HasSubstr("training goes on from the values of step 60, "),
                    HasSubstr("in the data behind step 70: "),
                    HasSubstr("begin anew in another folder, with the values of that step from ")));
}

TEST_F(BestThatIsGoneTest, WhatWasKeptAndIsDeletedDoesNotCountAmongTheBest) {
  const auto fit = [](uint32_t epochs, uint32_t count) {
    return FitOptions{.epochs = epochs,
                      .eval_every = {.epochs = 1},
                      .keep_best = KeepBestOptions{.metric = "mae", .count = count}};
  };
  std::vector<BestCheckpoint> best;
  {
    Trainer trainer(&c(), WithWarnings());
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit(4, 2)));
    best = result.best;
    ASSERT_THAT(best, SizeIs(2));
    EXPECT_EQ(best[0].steps, 30u);
    MU_ASSERT_OK(trainer.Save().status());
    MU_ASSERT_OK(RemoveTree(trainer.PathOf(best[0].directory)));
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  Trainer trainer(&c(), WithWarnings());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit(5, 1)));
  ASSERT_THAT(result.best, SizeIs(1));
  EXPECT_EQ(result.best[0].directory, best[1].directory);
  EXPECT_TRUE(FileExists(trainer.PathOf(result.best[0].directory)));
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr(best[0].directory),
                                           HasSubstr("(0.0000 after 30 steps)"))));
}

enum class Harm { kDeleted, kDamaged };

class SpoiltBestTest : public BestThatIsGoneTest, public ::testing::WithParamInterface<Harm> {
 protected:
  static void Spoil(const std::string& checkpoint) {
    if (GetParam() == Harm::kDeleted) {
      MU_ASSERT_OK(RemoveTree(checkpoint));
      return;
    }
    // Of the same size: only the servers notice.
    MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(checkpoint));
    int spoilt = 0;
    for (const std::string& name : names) {
      if (!absl::EndsWith(name, ".safetensors")) continue;
      const std::string path = JoinPath(checkpoint, name);
      MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(path));
      ASSERT_FALSE(bytes.empty());
      bytes.back() ^= 1;
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
      ++spoilt;
    }
    EXPECT_GT(spoilt, 0);
  }
};
INSTANTIATE_TEST_SUITE_P(Harms, SpoiltBestTest, ::testing::Values(Harm::kDeleted, Harm::kDamaged));

// Between the last evaluation and the end of training.
TEST_P(SpoiltBestTest, TheLastValuesStayWithAWarning) {
  TrainerOptions options = WithWarnings();
  std::string best;
  options.callbacks.on_evaluation = [&](const Evaluation& evaluation) {
    if (evaluation.steps == 30) best = evaluation.checkpoint;
    if (evaluation.steps == 50) Spoil(cluster_->directory() + "/checkpoints/" + best);
  };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit(
          {.epochs = 20, .early_stopping = EarlyStoppingOptions{.metric = "mae", .patience = 2}}));
  ASSERT_FALSE(best.empty());
  EXPECT_TRUE(result.stopped_early);
  EXPECT_FALSE(result.restored_best);
  EXPECT_EQ(result.early_stopping->best_steps, 30u);
  ASSERT_TRUE(result.last.has_value());
  EXPECT_EQ(result.last->steps, 50u);
  EXPECT_THAT(warnings_,
              Contains(AllOf(HasSubstr("(0.0000 after 30 steps, " + best + ")"),
                             HasSubstr("cannot be brought back, so those of the last step stay"))));
  MU_ASSERT_OK(trainer.Save().status());
  EXPECT_EQ(Sum(), 5 * kSum);
}

}  // namespace
}  // namespace mu
