// A trainer whose evaluations run beside training, and jobs that go on after they stopped in one.
#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <utility>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/kept_checkpoint.h"
#include "coordinator/training/in_process_evaluation.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBatch;
using testing::kRecords;
using testing::kSum;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::WriteFile;

class EvaluationBesideTest : public EvaluatedJobTest {
 protected:
  // The job's values as another cluster is to measure them: against a label that is 0.
  absl::StatusOr<EvaluationSpec> DefineIn(Coordinator& own) {
    EvaluationSpec spec = *Options().evaluation;
    MU_ASSIGN_OR_RETURN(
        spec.data,
        own.CreateDataset(
            Csv({cluster_->directory() + "/numbers.csv"}).Id("id", 0, 0).Batch(kBatch).Epochs(1)));
    MU_ASSIGN_OR_RETURN(const Variable sum, own.CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSIGN_OR_RETURN(spec.function, own.DefineFunction("forward", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(spec.data)["id"], kFloat32);
      f.Return("prediction", id * 0.0f + Cast(Read(sum), kFloat32) / static_cast<float>(kSum));
      f.Return("label", id * 0.0f);
    }));
    return spec;
  }
};

TEST_F(EvaluationBesideTest, EvaluatedBesideTrainingWithTheSameNumbers) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 6,
                                       .eval_every = {.epochs = 1},
                                       .beside = true,
                                       .keep_best = KeepBestOptions{.metric = "mae", .count = 2}}));
  ASSERT_THAT(result.evaluations, SizeIs(6)) << "the end waits for the last one";
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(result.evaluations[i].steps, 10 * (i + 1));
    EXPECT_NEAR(result.evaluations[i].metrics.at("mae"), std::abs(i + 1 - 3.0), 1e-5)
        << "of the values of then";
    EXPECT_FALSE(result.evaluations[i].checkpoint.empty());
  }
  EXPECT_EQ(Sum(), 6 * kSum);
  ASSERT_THAT(result.best, SizeIs(2));
  EXPECT_EQ(result.best[0].steps, 30u);
  for (const BestCheckpoint& best : result.best)
    EXPECT_TRUE(FileExists(trainer.PathOf(best.directory))) << best.directory;
}

TEST_F(EvaluationBesideTest, StopsSomeStepsLaterBesideTrainingAndRestoresTheBest) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 200,
                   .beside = true,
                   .early_stopping = EarlyStoppingOptions{.metric = "mae", .patience = 2}}));
  EXPECT_TRUE(result.stopped_early);
  EXPECT_LT(result.train.end.steps, 2000u);
  EXPECT_EQ(result.early_stopping->best_steps, 30u);
  EXPECT_EQ(result.evaluations.size(), 5u) << "none of the steps after the one that decided";
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(Sum(), 3 * kSum) << "the best values are back";
}

// Training has gone on meanwhile: nothing of it runs when the error is told.
TEST_F(EvaluationBesideTest, AnEvaluationBesideTrainingThatEndsItLeavesNothingRunning) {
  WriteFile(cluster_->directory() + "/bad.csv", "1\nno number\n");
  MU_ASSERT_OK_AND_ASSIGN(
      test_, c().CreateDataset(
                 Csv({cluster_->directory() + "/bad.csv"}).Id("id", 0, 0).Batch(1).Epochs(1)));
  MU_ASSERT_OK_AND_ASSIGN(forward_, c().DefineFunction("bad", [&](FunctionBuilder& f) {
    const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
    f.Return("prediction", id);
    f.Return("label", id);
  }));
  Trainer trainer(&c(), Options());
  EXPECT_THAT(trainer.Fit({.epochs = 2000,
                           .beside = true,
                           .early_stopping = EarlyStoppingOptions{.metric = "mae"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no number")));
  MU_ASSERT_OK_AND_ASSIGN(const bool done, c().Done());
  EXPECT_TRUE(done);
  MU_EXPECT_OK(c().Join());
}

// Functions on the workers would fail: none is asked.
TEST_F(EvaluationBesideTest, EvaluatedInThisProcessWithTheSameNumbers) {
  TrainerOptions options = Options();
  MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function,
                          c().DefineFunction("no label", [&](FunctionBuilder& f) {
                            f.Return("prediction", Cast(f.NextBatch(test_)["id"], kFloat32));
                          }));
  int made = 0;
  const auto define = [&](Coordinator& own) {
    ++made;
    return DefineIn(own);
  };
  options.evaluate_checkpoint = EvaluateInProcess({}, define);
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 6, .eval_every = {.epochs = 1}}));
  ASSERT_THAT(result.evaluations, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(result.evaluations[i].steps, 10 * (i + 1));
    EXPECT_EQ(result.evaluations[i].examples, uint64_t{kRecords});
    EXPECT_NEAR(result.evaluations[i].metrics.at("mae"), i + 1.0, 1e-5) << "of the values of then";
    EXPECT_FALSE(result.evaluations[i].checkpoint.empty());
  }
  EXPECT_EQ(made, 1) << "the cluster stays for the next checkpoint";
}

// The cluster that it has begun goes with it: there is no second variable of a name.
TEST_F(EvaluationBesideTest, WhatFailedInThisProcessDoesNotSpoilTheNext) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, trainer.Save());
  const CheckpointEvaluator evaluate =
      EvaluateInProcess({}, [&](Coordinator& own) { return DefineIn(own); });
  std::vector<std::string> warnings;
  EXPECT_FALSE(evaluate(cluster_->directory() + "/no checkpoint", nullptr, &warnings).ok());
  MU_ASSERT_OK_AND_ASSIGN(const Evaluation evaluated, evaluate(checkpoint, nullptr, &warnings));
  EXPECT_EQ(evaluated.examples, uint64_t{kRecords});
  EXPECT_NEAR(evaluated.metrics.at("mae"), 1, 1e-5);
}

// Its result is taken when it comes, not when the next one is due.
TEST_F(EvaluationBesideTest, AResultFromElsewhereEndsTrainingWhenItComes) {
  TrainerOptions options = Options();
  std::atomic<uint64_t> trained = 0;
  options.callbacks.on_step = [&](const TrainEvent& event) { trained = event.steps; };
  int calls = 0;
  options.evaluate_checkpoint = [&](const std::string&, const std::atomic<int>*,
                                    std::vector<std::string>*) -> absl::StatusOr<Evaluation> {
    Evaluation evaluation;
    evaluation.examples = kRecords;
    evaluation.metrics["mae"] = ++calls;  // always worse
    // Training goes on for a while before the result comes.
    const uint64_t steps = trained;
    testing::WaitWhile([&] { return trained < steps + 20; });
    return evaluation;
  };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 400,
                   .eval_every = {.epochs = 100},
                   .early_stopping = EarlyStoppingOptions{
                       .metric = "mae", .patience = 1, .restore_best = false}}));
  EXPECT_TRUE(result.stopped_early);
  EXPECT_EQ(calls, 2);
  EXPECT_THAT(result.train.end.steps, AllOf(::testing::Ge(2000u), ::testing::Lt(3000u)));
}

TEST_F(EvaluationBesideTest, BesideTrainingNeedsCheckpoints) {
  TrainerOptions options = Options();
  options.checkpoints.reset();
  Trainer trainer(&c(), std::move(options));
  EXPECT_THAT(trainer.Fit({.eval_every = {.epochs = 1}, .beside = true}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("FitOptions::beside needs")));
  options = Options();
  options.checkpoints.reset();
  options.evaluate_checkpoint = EvaluateInProcess({}, nullptr);
  Trainer elsewhere(&c(), std::move(options));
  EXPECT_THAT(elsewhere.Fit({.eval_every = {.epochs = 1}}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("evaluate_checkpoint needs")));
}

// Beside training and not.
class ContinuedEvaluationsTest : public EvaluationBesideTest,
                                 public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Beside, ContinuedEvaluationsTest, ::testing::Bool());

TEST_P(ContinuedEvaluationsTest, GoOnWhereTheyWereWhateverWasSaved) {
  const FitOptions fit = {.epochs = 20,
                          .beside = GetParam(),
                          .early_stopping = EarlyStoppingOptions{.metric = "mae", .patience = 2}};
  FitResult result;
  // It ends after one to three checkpoints and evaluations, and saves what it knows, or dies.
  int ends = 0;
  for (; ends < 40; ++ends) {
    std::atomic<int> stop = 0;
    int events = 0;
    const auto end = [&] { stop = ++events > ends % 3 ? 1 : 0; };
    TrainerOptions options = Options();
    options.callbacks.on_checkpoint = [&](const std::string&) { end(); };
    options.callbacks.on_evaluation = [&](const Evaluation&) { end(); };
    Trainer trainer(&c(), std::move(options));
    FitOptions stopped = fit;
    stopped.stop = &stop;
    MU_ASSERT_OK_AND_ASSIGN(result, trainer.Fit(stopped));
    if (!result.train.stopped) break;
    if (ends % 2 == 0) {
      MU_ASSERT_OK(trainer.Save().status());
    }
    trainer.EndCheckpoints();
    Restart();
  }
  EXPECT_GT(ends, 3);
  EXPECT_FALSE(result.train.stopped);
  EXPECT_TRUE(result.stopped_early);
  std::vector<uint64_t> steps;
  for (const Evaluation& evaluation : result.evaluations) steps.push_back(evaluation.steps);
  EXPECT_THAT(steps, ElementsAre(10, 20, 30, 40, 50));
  EXPECT_EQ(Sum(), 3 * kSum);
}

// The checkpoint that was being evaluated, however far training is when it goes on: a later one
// was saved, or it is the newest.
TEST_P(ContinuedEvaluationsTest, WhatWasUnderWayBesideTrainingIsEvaluatedOnce) {
  const bool saved = GetParam();
  const FitOptions fit = {.epochs = 3, .eval_every = {.epochs = 1}, .beside = true};
  std::string evaluated;
  StopInAnEvaluation(fit, [&](Trainer& trainer) {
    MU_ASSERT_OK_AND_ASSIGN(const auto taken,
                            ListCheckpoints(cluster_->directory() + "/checkpoints"));
    ASSERT_THAT(taken, SizeIs(1));
    evaluated = taken[0];
    EXPECT_TRUE(IsKept(evaluated)) << "for whoever goes on";
    if (saved) MU_ASSERT_OK(trainer.Save().status());
  });
  if (HasFatalFailure()) return;
  Restart();
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
    ASSERT_THAT(result.evaluations, SizeIs(3));
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(result.evaluations[i].steps, 10 * (i + 1));
      EXPECT_EQ(result.evaluations[i].epoch, i + 1);
      EXPECT_EQ(result.evaluations[i].metrics.at("mae"), 2 - static_cast<double>(i));
    }
    EXPECT_EQ(result.evaluations[0].checkpoint, BaseName(evaluated));
    EXPECT_FALSE(IsKept(evaluated));
  }
}

// A process that died in the callback of an evaluation would go on from a checkpoint without it.
TEST_P(ContinuedEvaluationsTest, WhatTheNewestCheckpointNamesStays) {
  TrainerOptions options = Options();
  options.checkpoints->keep = 1;
  Trainer* taking = nullptr;
  std::set<std::string> named;
  options.callbacks.on_evaluation = [&](const Evaluation& evaluation) {
    if (evaluation.steps != 20) return;
    // Servers drop the view of what was evaluated soon; from then on nobody holds it.
    for (int i = 0; i < 20; ++i) {
      MU_ASSERT_OK_AND_ASSIGN(const std::string taken, taking->checkpointer()->TakeNow());
      MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(taken));
      named = TrainingHistory::Parse(manifest.user_state()).Checkpoints({.of_keep_best = true});
      EXPECT_THAT(named, SizeIs(GetParam() ? 2 : 1)) << "without the result";
      for (const std::string& name : named) ASSERT_TRUE(FileExists(taking->PathOf(name))) << i;
    }
  };
  Trainer trainer(&c(), std::move(options));
  taking = &trainer;
  MU_ASSERT_OK(trainer
                   .Fit({.epochs = 3,
                         .eval_every = {.epochs = 1},
                         .beside = GetParam(),
                         .keep_best = KeepBestOptions{.metric = "mae"}})
                   .status());
  ASSERT_THAT(named, Not(IsEmpty())) << "it was looked at";
  testing::WaitWhile([&] {
    MU_EXPECT_OK(trainer.Save().status());
    return std::any_of(named.begin(), named.end(),
                       [&](const std::string& name) { return FileExists(trainer.PathOf(name)); });
  });
}

// When the job goes on from a later one, its folder is gone, or holds nothing that can be read:
// each start would fail again.
TEST_P(ContinuedEvaluationsTest, WhatWasUnderWayIsGivenUpWithoutItsCheckpoint) {
  ASSERT_NO_FATAL_FAILURE(TrainWithAnEvaluationPending());
  if (GetParam()) {
    const std::string folder = cluster_->directory() + "/checkpoints/ckpt-00000000";
    MU_ASSERT_OK(MakeDirectories(folder));
    WriteFile(folder + "/manifest.json", "no manifest");
  }
  Restart();
  std::vector<std::string> warnings;
  TrainerOptions options = Options();
  options.callbacks.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 3,
                                       .eval_every = {.epochs = 3},
                                       .beside = true,
                                       .early_stopping = EarlyStoppingOptions{.metric = "mae"}}));
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 30u);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("ckpt-00000000"), HasSubstr("given up")));
}

// So many evaluations without an improvement are known, and the next one, which was under way, is
// one: as after a change of the job's early stopping.
TEST_F(EvaluationBesideTest, AnImprovementThatWasUnderWayIsNotStoppedBefore) {
  const EarlyStoppingOptions stopping = {.metric = "mae", .patience = 1, .restore_best = false};
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK_AND_ASSIGN(const std::string taken, trainer.Save());
    EarlyStopping waits(stopping, {.best = 5, .best_steps = 2, .waits = 1});
    ASSERT_TRUE(waits.stopped());
    TrainingHistory history;
    history.SetEarlyStopping(waits);
    history.SetPending(PendingEvaluation{BaseName(taken), 10, 1});
    c().SetUserState(history.ToString());
    MU_ASSERT_OK(trainer.Save().status());
  }
  Restart();
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .beside = true, .early_stopping = stopping}));
  EXPECT_EQ(result.train.end.steps, 20u);
  EXPECT_FALSE(result.stopped_early);
  ASSERT_THAT(result.evaluations, SizeIs(2));
  EXPECT_EQ(result.evaluations[0].steps, 10u);
  EXPECT_EQ(result.evaluations[0].metrics.at("mae"), 2);
  EXPECT_EQ(Sum(), 2 * kSum);
}

// One that was taken while functions ran has other values than those that were to be evaluated.
TEST_F(EvaluationBesideTest, ACheckpointOfAMomentBeforeIsNotTakenForTheOneToEvaluate) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    c().Schedule(step_, {.steps = 1000});
    TrainingHistory history;
    history.SetPending(PendingEvaluation{"", 1010, 101});
    c().SetUserState(history.ToString());
    MU_ASSERT_OK(trainer.checkpointer()->TakeNow().status());
  }
  Restart();
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 102, .eval_every = {.epochs = 51}, .beside = true}));
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 1020u);
  EXPECT_EQ(result.evaluations[0].metrics.at("mae"), 99);
}

// A round waits for what a contributor is at.
TEST_F(EvaluationBesideTest, EvaluatedAStepAtATimeInRoundsOnly) {
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset records,
      c().CreateDataset(
          Csv({cluster_->directory() + "/numbers.csv"}).Id("id", 0, 0).Batch(1).Epochs(1)));
  TrainerOptions options = Options();
  options.evaluation->data = records;
  MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function,
                          c().DefineFunction("each", [&](FunctionBuilder& f) {
                            const Sym id = Cast(f.NextBatch(records)["id"], kFloat32);
                            f.Return("prediction", id);
                            f.Return("label", id);
                          }));
  Trainer trainer(&c(), std::move(options));
  uint32_t epochs = 0;
  const auto functions = [&](std::optional<RoundRules> rounds) -> uint64_t {
    const uint64_t before = c().Counts().functions;
    MU_EXPECT_OK(trainer
                     .Fit({.epochs = ++epochs,
                           .steps_per_function = 1,
                           .sync = rounds,
                           .eval_every = {.epochs = 1},
                           .beside = true})
                     .status());
    return c().Counts().functions - before - kRecords / kBatch;
  };
  EXPECT_LT(functions(std::nullopt), uint64_t{kRecords / 2});
  EXPECT_EQ(functions(RoundRules{.replicas = 2}), uint64_t{kRecords});
  EXPECT_EQ(functions(std::nullopt), uint64_t{kRecords}) << "they are still what was set";
}

}  // namespace
}  // namespace mu
