// Training that stands still for evaluations, by the loop and by the trainer.
#include <utility>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/training/trainer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::Numbers;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::TestCluster;
using testing::WriteFile;

constexpr int64_t kRecords = 100, kBatch = 10, kSum = kRecords * (kRecords - 1) / 2;

class EvaluationPointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 2, .ps = 2}));
    WriteFile(cluster_->directory() + "/numbers.csv", Numbers(0, kRecords));
    Create();
  }
  // What the coordinator of now needs.
  void Create() {
    const auto numbers = [&](const char* name) {
      return Csv({cluster_->directory() + "/numbers.csv"}).Id("id", 0, 0).Batch(kBatch).Name(name);
    };
    MU_ASSERT_OK_AND_ASSIGN(data_, c().CreateDataset(numbers("train").Shuffle(50)));
    MU_ASSERT_OK_AND_ASSIGN(test_, c().CreateDataset(numbers("test").Epochs(1)));
    MU_ASSERT_OK_AND_ASSIGN(sum_, c().CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSERT_OK_AND_ASSIGN(step_, c().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(data_)["id"];
      AssignAdd(sum_, ReduceSum(id));
      f.Return("loss", ReduceMean(Cast(id, kFloat32)));
    }));
    // Of a label that is 0: how far training has come. Beyond `turn_` it goes back.
    MU_ASSERT_OK_AND_ASSIGN(forward_, c().DefineFunction("forward", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
      const Sym off = Cast(Read(sum_), kFloat32) / static_cast<float>(kSum) - turn_;
      f.Return("prediction", id * 0.0f + Maximum(off, off * -1.0f));
      f.Return("label", id * 0.0f);
    }));
  }
  void Restart() {
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    Create();
  }
  TrainerOptions Options() {
    return {.step = step_,
            .data = data_,
            .evaluation = EvaluationSpec{.function = forward_,
                                         .data = test_,
                                         .outputs = ForwardOf(Task::kRegression),
                                         .metrics = {"mae"}},
            .checkpoints = CheckpointerOptions{.directory = cluster_->directory() + "/checkpoints",
                                               .every = absl::InfiniteDuration()}};
  }
  Coordinator& c() { return cluster_->coordinator(); }
  int64_t Sum() {
    const auto value = c().Read(sum_);
    MU_EXPECT_OK(value.status());
    return value.ok() ? *value->data<int64_t>() : -1;
  }

  std::unique_ptr<TestCluster> cluster_;
  Dataset data_, test_;
  Function step_, forward_;
  Variable sum_;
  float turn_ = 3;  // epochs
};

TEST_F(EvaluationPointsTest, EpochsAreWholeWhenTheyAreEvaluated) {
  std::vector<int64_t> sums;
  std::vector<uint32_t> epochs;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult result,
      Train(c(), step_, data_,
            {.epochs = 5,
             .eval_every = {.epochs = 2},
             .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
               EXPECT_EQ(at.steps, at.epoch * kRecords / kBatch);
               EXPECT_TRUE(at.epoch_ends);
               sums.push_back(Sum() - kSum * at.epoch);
               return true;
             },
             .on_epoch =
                 [&](const EpochLoss& epoch) {
                   epochs.push_back(epoch.epoch);
                   EXPECT_EQ(epoch.samples, uint64_t{kRecords});
                   EXPECT_NEAR(epoch.loss(), (kRecords - 1) / 2.0, 1e-3);
                 }}));
  EXPECT_THAT(sums, ElementsAre(0, 0));
  EXPECT_THAT(epochs, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(result.epochs, SizeIs(5));
  EXPECT_EQ(result.end.steps, 50u);
  EXPECT_EQ(result.samples, uint64_t{5 * kRecords});
}

TEST_F(EvaluationPointsTest, ExactlyAfterSoManySteps) {
  std::vector<uint64_t> steps;
  MU_ASSERT_OK_AND_ASSIGN(
      const TrainResult result,
      Train(c(), step_, data_,
            {.epochs = 3,
             .steps_per_function = 4,
             .eval_every = {.steps = 7},
             .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
               EXPECT_EQ(c().Counts().steps, at.steps);
               EXPECT_EQ(at.epoch, (at.steps - 1) / 10 + 1);
               steps.push_back(at.steps);
               return at.steps < 21;
             }}));
  EXPECT_THAT(steps, ElementsAre(7, 14, 21));
  EXPECT_TRUE(result.ended);
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.steps, 21u);
}

// Another call continues what was begun; where nothing is left it says so.
TEST_F(EvaluationPointsTest, ASecondCallMustAskForMore) {
  MU_ASSERT_OK(Train(c(), step_, data_, {.epochs = 2}).status());
  EXPECT_THAT(Train(c(), step_, data_, {.epochs = 2}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("'train' has been read 2 times already: nothing is left to do")));
  EXPECT_THAT(Train(c(), step_, data_, {.epochs = 9, .max_steps = 20}).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("max_steps is 20")));
  EXPECT_EQ(Sum(), 2 * kSum);
  MU_ASSERT_OK(Train(c(), step_, data_, {.epochs = 3}).status());
  EXPECT_EQ(Sum(), 3 * kSum);
  MU_EXPECT_OK(Train(c(), step_, data_, {.epochs = 0}).status());
}

TEST_F(EvaluationPointsTest, StopsEarlyAndRestoresTheBest) {
  TrainerOptions options = Options();
  std::vector<StopReason> stops;
  options.callbacks.on_stop = [&](StopReason reason) { stops.push_back(reason); };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 20,
                   .early_stopping = EarlyStoppingOptions{.metric = "mae", .patience = 2},
                   .keep_best = KeepBestOptions{.metric = "mae", .count = 3}}));
  ASSERT_THAT(result.evaluations, SizeIs(5)) << "each epoch";
  for (size_t i = 0; i < 5; ++i)
    EXPECT_NEAR(result.evaluations[i].metrics.at("mae"), std::abs(i + 1 - 3.0), 1e-5);
  EXPECT_TRUE(result.stopped_early);
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(result.early_stopping->best_steps, 30u);
  EXPECT_EQ(Sum(), 3 * kSum) << "the best values are back";
  EXPECT_THAT(stops, ElementsAre(StopReason::kEarly));
  ASSERT_TRUE(result.last.has_value());
  EXPECT_EQ(result.last->steps, 30u);
  MU_ASSERT_OK_AND_ASSIGN(const Evaluation again, trainer.Evaluate());
  EXPECT_EQ(again.metrics, result.last->metrics);
  EXPECT_EQ(again.examples, uint64_t{kRecords});
  // The best three stay beside the newest three, which Save makes.
  MU_ASSERT_OK(trainer.Save().status());
  ASSERT_THAT(result.best, SizeIs(3));
  EXPECT_EQ(result.best[0].directory, result.early_stopping->best_checkpoint);
  for (const BestCheckpoint& best : result.best)
    EXPECT_TRUE(FileExists(trainer.PathOf(best.directory))) << best.directory;
}

TEST_F(EvaluationPointsTest, EvaluatedBesideTrainingWithTheSameNumbers) {
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

TEST_F(EvaluationPointsTest, StopsSomeStepsLaterBesideTrainingAndRestoresTheBest) {
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
TEST_F(EvaluationPointsTest, AnEvaluationBesideTrainingThatEndsItLeavesNothingRunning) {
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

TEST_F(EvaluationPointsTest, BesideTrainingNeedsCheckpoints) {
  TrainerOptions options = Options();
  options.checkpoints.reset();
  Trainer trainer(&c(), std::move(options));
  EXPECT_THAT(trainer.Fit({.eval_every = {.epochs = 1}, .beside = true}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("FitOptions::beside needs")));
}

TEST_F(EvaluationPointsTest, GoesOnWhereItWasWhateverWasSaved) {
  const FitOptions fit = {.epochs = 20,
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
    if (ends % 2 == 0) MU_ASSERT_OK(trainer.Save().status());
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

TEST_F(EvaluationPointsTest, AJobThatStoppedAtAnEpochsEndIsNotEvaluatedTwice) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK_AND_ASSIGN(const FitResult first,
                            trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
    EXPECT_THAT(first.evaluations, SizeIs(2));
    MU_ASSERT_OK(trainer.Save().status());
  }
  Restart();
  TrainerOptions options = Options();
  int evaluated = 0;
  options.callbacks.on_evaluation = [&](const Evaluation&) { ++evaluated; };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult second,
                          trainer.Fit({.epochs = 3, .eval_every = {.epochs = 1}}));
  EXPECT_EQ(evaluated, 1);
  EXPECT_THAT(second.evaluations, SizeIs(3));
  EXPECT_EQ(second.train.samples, uint64_t{3 * kRecords});
}

// A record of the evaluation that cannot be read ends training only if something depends on it.
TEST_F(EvaluationPointsTest, AnEvaluationThatFailsIsAWarning) {
  WriteFile(cluster_->directory() + "/bad.csv", "1\nx\n");
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset bad,
      c().CreateDataset(
          Csv({cluster_->directory() + "/bad.csv"}).Id("id", 0, 0).Batch(1).Epochs(1)));
  MU_ASSERT_OK_AND_ASSIGN(const Function fails,
                          c().DefineFunction("fails", [&](FunctionBuilder& f) {
                            const Sym id = Cast(f.NextBatch(bad)["id"], kFloat32);
                            f.Return("prediction", id);
                            f.Return("label", id);
                          }));
  TrainerOptions options = Options();
  options.evaluation->function = fails;
  options.evaluation->data = bad;
  std::vector<std::string> warnings;
  options.callbacks.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 3, .eval_every = {.epochs = 1}}));
  EXPECT_EQ(Sum(), 3 * kSum);
  EXPECT_THAT(result.evaluations, IsEmpty());
  ASSERT_THAT(warnings, Not(IsEmpty()));
  EXPECT_THAT(warnings[0], HasSubstr("an evaluation failed, training goes on: "));
  EXPECT_FALSE(
      trainer.Fit({.epochs = 4, .early_stopping = EarlyStoppingOptions{.metric = "mae"}}).ok());
}

TEST_F(EvaluationPointsTest, RefusesWhatDoesNotGoTogether) {
  TrainerOptions options = Options();
  options.evaluation.reset();
  Trainer blind(&c(), std::move(options));
  EXPECT_THAT(blind.Fit({.eval_every = {.epochs = 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("evaluation")));
  EXPECT_THAT(blind.Fit({.early_stopping = EarlyStoppingOptions{.metric = "mae"}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`mae`, which is not computed; give the trainer an evaluation")));
  EXPECT_THAT(blind.Evaluate(), HasCode(absl::StatusCode::kFailedPrecondition));
  options = Options();
  options.checkpoints.reset();
  Trainer trainer(&c(), std::move(options));
  EXPECT_THAT(
      trainer.Fit({.early_stopping = EarlyStoppingOptions{.metric = "rmse"}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("need TrainerOptions::check")));
  EXPECT_THAT(trainer.Fit({.early_stopping =
                               EarlyStoppingOptions{.metric = "rmse", .restore_best = false}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`rmse`, which is not computed; computed are mae")));
  EXPECT_THAT(trainer.Save(), HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(Sum(), 0);
}

TEST_F(EvaluationPointsTest, OneFolderIsSavedAgainAndAgain) {
  c().EnableRecovery(cluster_->directory() + "/checkpoints");
  const std::string best = cluster_->directory() + "/best";
  for (uint32_t epoch = 1; epoch <= 3; ++epoch) {
    MU_ASSERT_OK(Train(c(), step_, data_, {.epochs = epoch}).status());
    MU_ASSERT_OK(c().Save(best, {}, {.replace = true}).status());
  }
  EXPECT_THAT(c().Save(best), HasCode(absl::StatusCode::kAlreadyExists));
  MU_ASSERT_OK(Train(c(), step_, data_, {.epochs = 4}).status());
  MU_ASSERT_OK(c().Restore(best).status());
  EXPECT_EQ(Sum(), 3 * kSum);
  MU_ASSERT_OK_AND_ASSIGN(const auto names, ListDirectory(cluster_->directory()));
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](const std::string& name) { return name.rfind("best", 0) == 0; }),
            3)
      << "the link, its folder, and the one before, which servers may go back to";
}

}  // namespace
}  // namespace mu
