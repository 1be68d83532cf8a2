// A trainer that evaluates the current values beside training, without a checkpoint.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kRecords;
using testing::kSum;
using ::testing::SizeIs;
using testing::StatusIs;

class EvaluationOfCurrentTest : public EvaluatedJobTest {
 protected:
  TrainerOptions WithoutCheckpoints() {
    TrainerOptions options = Options();
    options.checkpoints.reset();
    return options;
  }
};

TEST_F(EvaluationOfCurrentTest, WithoutACheckpoint) {
  // The mean absolute error is how many epochs were trained, on the mean over the batches.
  TrainerOptions options = WithoutCheckpoints();
  MU_ASSERT_OK_AND_ASSIGN(
      options.evaluation->function, c().DefineFunction("epochs", [&](FunctionBuilder& f) {
        const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
        f.Return("prediction", id * 0.0f + Cast(Read(sum_), kFloat32) / static_cast<float>(kSum));
        f.Return("label", id * 0.0f);
      }));
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 6,
                                       .eval_every = {.epochs = 1},
                                       .beside = true,
                                       .values = EvaluatedValues::kCurrent}));
  ASSERT_THAT(result.evaluations, SizeIs(6)) << "the end waits for the last one";
  for (size_t i = 0; i < 6; ++i) {
    const Evaluation& evaluation = result.evaluations[i];
    EXPECT_EQ(evaluation.steps, 10 * (i + 1)) << "where it began";
    EXPECT_EQ(evaluation.examples, uint64_t{kRecords});
    // The next one waits for its end, so training is not further.
    EXPECT_GE(evaluation.metrics.at("mae"), i + 1 - 1e-5);
    EXPECT_LE(evaluation.metrics.at("mae"), std::min<size_t>(i + 2, 6) + 1e-5);
    EXPECT_EQ(evaluation.checkpoint, "");
  }
  EXPECT_FALSE(result.last.has_value()) << "whoever wants that of the end evaluates it";
  EXPECT_EQ(Sum(), 6 * kSum);
  EXPECT_FALSE(FileExists(cluster_->directory() + "/checkpoints"));
}

TEST_F(EvaluationOfCurrentTest, TrainingGoesOn) {
  TrainerOptions options = Options();
  MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function, DefineSlow());
  uint64_t steps = 0, steps_then = 0;
  options.callbacks.on_step = [&](const TrainEvent& event) { steps = event.steps; };
  options.callbacks.on_evaluation = [&](const Evaluation&) { steps_then = steps; };
  std::atomic<int> checkpoints = 0;
  options.callbacks.on_checkpoint = [&](const std::string&) { ++checkpoints; };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 3,
                                       .steps_per_function = 1,
                                       .eval_every = {.epochs = 2},
                                       .beside = true,
                                       .values = EvaluatedValues::kCurrent}));
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 20u);
  EXPECT_GT(steps_then, 20u);
  EXPECT_EQ(checkpoints, 0);
}

TEST_F(EvaluationOfCurrentTest, EarlyStoppingThatRestoresNothing) {
  Trainer trainer(&c(), WithoutCheckpoints());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 200,
                   .beside = true,
                   .values = EvaluatedValues::kCurrent,
                   .early_stopping = EarlyStoppingOptions{
                       .metric = "mae", .patience = 2, .restore_best = false}}));
  EXPECT_TRUE(result.stopped_early);
  EXPECT_LT(result.train.end.steps, 2000u);
  EXPECT_FALSE(result.restored_best);
}

// Nobody has these values any more: it reads those that the job goes on with.
TEST_F(EvaluationOfCurrentTest, WhatWasUnderWayBeginsAnew) {
  const FitOptions fit = {.epochs = 3,
                          .eval_every = {.epochs = 1},
                          .beside = true,
                          .values = EvaluatedValues::kCurrent};
  StopInAnEvaluation(fit, [](Trainer& trainer) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string saved, trainer.Save());
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(saved));
    const auto pending = TrainingHistory::Parse(manifest.user_state()).pending();
    ASSERT_TRUE(pending.has_value());
    EXPECT_TRUE(pending->current);
  });
  if (HasFatalFailure()) return;
  Restart();
  TrainerOptions options = Options();
  options.callbacks.on_warning = [](const std::string& text) { ADD_FAILURE() << text; };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
  std::vector<uint64_t> steps;
  for (const Evaluation& evaluation : result.evaluations) {
    steps.push_back(evaluation.steps);
    EXPECT_EQ(evaluation.examples, uint64_t{kRecords});
    EXPECT_EQ(evaluation.checkpoint, "");
  }
  EXPECT_THAT(steps, ElementsAre(10, 20, 30));
  EXPECT_EQ(result.evaluations[0].epoch, 1u);
  EXPECT_FALSE(trainer.history().pending().has_value());
}

// In one program.
TEST_F(EvaluationOfCurrentTest, TheNextFitBeginsAnewWhatAStopEnded) {
  std::atomic<int> stop = 0;
  bool stops = true;
  TrainerOptions options = WithoutCheckpoints();
  MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function, DefineSlow());
  options.callbacks.on_step = [&](const TrainEvent& event) {
    if (stops && event.steps > 11) stop = 1;
  };
  Trainer trainer(&c(), std::move(options));
  FitOptions fit = {.epochs = 2,
                    .steps_per_function = 1,
                    .stop = &stop,
                    .eval_every = {.epochs = 1},
                    .beside = true,
                    .values = EvaluatedValues::kCurrent};
  MU_ASSERT_OK_AND_ASSIGN(const FitResult first, trainer.Fit(fit));
  ASSERT_TRUE(first.train.stopped);
  ASSERT_THAT(first.evaluations, IsEmpty());
  stops = false;
  stop = 0;
  fit.eval_every = {.epochs = 5};
  MU_ASSERT_OK_AND_ASSIGN(const FitResult second, trainer.Fit(fit));
  ASSERT_THAT(second.evaluations, SizeIs(1));
  EXPECT_EQ(second.evaluations[0].steps, 10u);
  EXPECT_EQ(second.evaluations[0].examples, uint64_t{kRecords});
}

TEST_F(EvaluationOfCurrentTest, WhatWasUnderWayIsGivenUpIfSuchValuesAreNotEvaluatedAnyMore) {
  FitOptions fit = {.epochs = 2,
                    .eval_every = {.epochs = 1},
                    .beside = true,
                    .values = EvaluatedValues::kCurrent};
  StopInAnEvaluation(fit, [](Trainer& trainer) { MU_ASSERT_OK(trainer.Save().status()); });
  if (HasFatalFailure()) return;
  Restart();
  std::vector<std::string> warnings;
  TrainerOptions options = Options();
  options.callbacks.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Trainer trainer(&c(), std::move(options));
  fit.values = EvaluatedValues::kCheckpoint;
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("current values from 10 steps"),
                                          HasSubstr("is given up"))));
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 20u);
}

TEST_F(EvaluationOfCurrentTest, RefusedWithWhatNeedsACheckpoint) {
  const auto refuses = [&](Trainer& trainer, FitOptions fit, const char* why) {
    fit.values = EvaluatedValues::kCurrent;
    fit.eval_every = {.epochs = 1};
    EXPECT_THAT(trainer.Fit(fit),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("FitOptions::values is kCurrent"), HasSubstr(why))));
  };
  {
    Trainer trainer(&c(), Options());
    refuses(trainer, {}, "beside is not set");
    refuses(trainer, {.beside = true, .keep_best = KeepBestOptions{.metric = "mae"}},
            "keep_best keeps");
    refuses(trainer, {.beside = true, .early_stopping = EarlyStoppingOptions{.metric = "mae"}},
            "set it to false");
  }
  TrainerOptions options = Options();
  options.evaluate_checkpoint = [](const std::string&, const std::atomic<int>*,
                                   std::vector<std::string>*) -> absl::StatusOr<Evaluation> {
    return absl::InternalError("nothing is evaluated");
  };
  Trainer elsewhere(&c(), std::move(options));
  refuses(elsewhere, {.beside = true}, "evaluate_checkpoint evaluates checkpoints");
  EXPECT_EQ(Sum(), 0);
}

}  // namespace
}  // namespace mu
