// Evaluations on the way that fail, whichever way they are made: training goes on, or it ends and
// can be continued.
#include <gmock/gmock.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kRecords;
using testing::kSum;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;

enum class Way { kStill, kBeside, kCurrent, kElsewhere };

class EvaluationErrorTest : public EvaluatedJobTest, public ::testing::WithParamInterface<Way> {
 protected:
  // `fails`: the evaluation takes the logarithm of -1, or says that it did.
  absl::StatusOr<TrainerOptions> Evaluated(bool fails) {
    TrainerOptions options = Options();
    options.callbacks.on_step = [this](const TrainEvent& event) { trained_ = event.steps; };
    options.callbacks.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    if (GetParam() == Way::kElsewhere) {
      options.evaluate_checkpoint = [fails](
                                        const std::string&, const std::atomic<int>*,
                                        std::vector<std::string>*) -> absl::StatusOr<Evaluation> {
        if (fails) return absl::InvalidArgumentError("the logarithm of a negative number");
        Evaluation evaluation;
        evaluation.examples = kRecords;
        evaluation.metrics["mae"] = 2;
        return evaluation;
      };
    } else if (fails) {
      MU_ASSIGN_OR_RETURN(options.evaluation->function,
                          c().DefineFunction("fails", [&](FunctionBuilder& f) {
                            const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
                            f.Return("prediction", Log(id * 0.0f - 1.0f));
                            f.Return("label", id * 0.0f);
                          }));
    }
    return options;
  }
  // Each epoch is evaluated.
  static FitOptions EachOf(uint32_t epochs) {
    FitOptions fit;
    fit.epochs = epochs;
    fit.eval_every = {.epochs = 1};
    fit.beside = GetParam() == Way::kBeside || GetParam() == Way::kCurrent;
    if (GetParam() == Way::kCurrent) fit.values = EvaluatedValues::kCurrent;
    return fit;
  }
  std::string Folder() const { return cluster_->directory() + "/checkpoints"; }

  uint64_t trained_ = 0;  // steps
  std::vector<std::string> warnings_;
};
INSTANTIATE_TEST_SUITE_P(Ways, EvaluationErrorTest,
                         ::testing::Values(Way::kStill, Way::kBeside, Way::kCurrent,
                                           Way::kElsewhere));

TEST_P(EvaluationErrorTest, IsAWarningUnlessTheOptionsSayOtherwise) {
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Evaluated(/*fails=*/true));
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(EachOf(3)));
  EXPECT_FALSE(trainer.evaluation_failed());
  EXPECT_EQ(Sum(), 3 * kSum);
  EXPECT_THAT(result.evaluations, IsEmpty());
  ASSERT_THAT(warnings_, Not(IsEmpty()));
  EXPECT_THAT(warnings_[0], AllOf(HasSubstr("an evaluation failed, training goes on: "),
                                  HasSubstr("logarithm of a negative number")));
}

// The job goes on twice: what is wrong is wrong once more, and then fixed.
TEST_P(EvaluationErrorTest, EndsTrainingThatGoesOnWhereItEnded) {
  const std::string which = "the evaluation after 10 steps, in epoch 1, failed: ";
  for (int life = 0; life < 2; ++life) {
    SCOPED_TRACE(life);
    MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Evaluated(/*fails=*/true));
    {
      Trainer trainer(&c(), std::move(options));
      FitOptions fit = EachOf(1000);
      fit.fail_on_evaluation_error = true;
      EXPECT_THAT(trainer.Fit(fit),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr(which), HasSubstr("logarithm of a negative number"))));
      EXPECT_TRUE(trainer.evaluation_failed());
    }
    MU_ASSERT_OK_AND_ASSIGN(const bool done, c().Done());
    EXPECT_TRUE(done) << "nothing of it runs";
    MU_ASSERT_OK_AND_ASSIGN(const auto checkpoints, ListCheckpoints(Folder()));
    ASSERT_THAT(checkpoints, Not(IsEmpty()));
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(checkpoints.back()));
    EXPECT_EQ(manifest.position().steps(), trained_) << "all that was trained";
    if (GetParam() == Way::kStill) {
      EXPECT_EQ(trained_, 10u);
      EXPECT_THAT(checkpoints, SizeIs(1)) << "the second life has nothing to save";
    }
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
  EXPECT_THAT(warnings_, IsEmpty());
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Evaluated(/*fails=*/false));
  Trainer trainer(&c(), std::move(options));
  const auto epochs = static_cast<uint32_t>(trained_ / 10 + 2);
  FitOptions fit = EachOf(epochs);
  fit.fail_on_evaluation_error = true;
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
  EXPECT_FALSE(trainer.evaluation_failed());
  EXPECT_EQ(result.train.samples, epochs * static_cast<uint64_t>(kRecords));
  EXPECT_EQ(Sum(), epochs * kSum);
  ASSERT_THAT(result.evaluations, Not(IsEmpty()));
  EXPECT_EQ(result.evaluations[0].steps, 10u) << "the one that failed";
  if (GetParam() != Way::kCurrent) {
    EXPECT_NEAR(result.evaluations[0].metrics.at("mae"), 2, 1e-5) << "of the values of then";
  }
  EXPECT_EQ(result.evaluations.back().steps, epochs * 10u);
  EXPECT_THAT(warnings_, IsEmpty());
}

// Early stopping's evaluation of the end, where nothing else would be saved.
TEST_P(EvaluationErrorTest, OfTheEndIsNoReasonToLoseWhatWasTrained) {
  FitOptions fit = EachOf(2);
  fit.eval_every = {.epochs = 5};
  fit.early_stopping = EarlyStoppingOptions{.metric = "mae", .restore_best = false};
  {
    MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Evaluated(/*fails=*/true));
    Trainer trainer(&c(), std::move(options));
    EXPECT_THAT(trainer.Fit(fit), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("after 20 steps, in epoch 2, failed: ")));
    EXPECT_TRUE(trainer.evaluation_failed());
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Evaluated(/*fails=*/false));
  Trainer trainer(&c(), std::move(options));
  trained_ = 0;
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
  EXPECT_EQ(trained_, 0u) << "there is nothing left to train";
  EXPECT_EQ(result.train.steps, 20u);
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 20u);
  EXPECT_EQ(Sum(), 2 * kSum);
}

class EvaluationOfAFormerCoordinatorTest : public EvaluatedJobTest {};

// Else each start would fail again.
TEST_F(EvaluationOfAFormerCoordinatorTest, IsGivenUpWithoutItsCheckpointAllTheSame) {
  ASSERT_NO_FATAL_FAILURE(TrainWithAnEvaluationPending());
  ASSERT_NO_FATAL_FAILURE(Restart());
  std::vector<std::string> warnings;
  TrainerOptions options = Options();
  options.callbacks.on_warning = [&](const std::string& text) { warnings.push_back(text); };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit({.epochs = 3,
                                                               .eval_every = {.epochs = 3},
                                                               .beside = true,
                                                               .fail_on_evaluation_error = true}));
  EXPECT_FALSE(trainer.evaluation_failed());
  ASSERT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(result.evaluations[0].steps, 30u);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("ckpt-00000000"), HasSubstr("given up")));
}

}  // namespace
}  // namespace mu
