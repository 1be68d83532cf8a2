// What a program runs before a trainer's first Fit reads initial values, and costs a job that has
// stopped nothing.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/kept_checkpoint.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using testing::EvaluatedJobTest;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kRecords;
using testing::kSum;
using ::testing::Not;
using testing::StatusIs;

class BeforeTheFirstFitTest : public EvaluatedJobTest {
 protected:
  std::string Folder() const { return cluster_->directory() + "/checkpoints"; }
  // Another coordinator is to continue a job that has trained two epochs.
  void TrainAndRestart() {
    {
      Trainer trainer(&c(), Options());
      MU_ASSERT_OK_AND_ASSIGN(
          const FitResult result,
          trainer.Fit({.epochs = 2, .keep_best = KeepBestOptions{.metric = "mae"}}));
      ASSERT_THAT(result.best, Not(IsEmpty()));
      best_ = trainer.PathOf(result.best[0].directory);
      MU_ASSERT_OK(trainer.Save().status());
    }
    MU_ASSERT_OK_AND_ASSIGN(checkpoints_, ListCheckpoints(Folder()));
    ASSERT_THAT(checkpoints_, Not(IsEmpty()));
    ASSERT_TRUE(IsKept(best_));
    Restart();
  }
  void ExpectThatTheJobIsAsItWas() {
    EXPECT_THAT(ListCheckpoints(Folder()).value(), ::testing::ElementsAreArray(checkpoints_));
    EXPECT_TRUE(IsKept(best_)) << best_;
    ASSERT_NO_FATAL_FAILURE(Restart());
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 3}).status());
    EXPECT_EQ(Sum(), 3 * kSum);
  }

  std::vector<std::string> checkpoints_;
  std::string best_;
};

TEST_F(BeforeTheFirstFitTest, AnEvaluationIsNoReasonToForgetTheJob) {
  ASSERT_NO_FATAL_FAILURE(TrainAndRestart());
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK_AND_ASSIGN(const Evaluation initial, trainer.Evaluate());
    EXPECT_EQ(initial.examples, uint64_t{kRecords});
    EXPECT_NEAR(initial.metrics.at("mae"), turn_, 1e-5) << "of the initial values";
    EXPECT_FALSE(c().begun());
    EXPECT_THAT(trainer.Save(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("holds checkpoints")));
    EXPECT_THAT(trainer.Fit({.epochs = 3}),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("call StartFresh()")));
    EXPECT_EQ(Sum(), 0) << "nothing was trained";
  }
  ExpectThatTheJobIsAsItWas();
}

TEST_F(BeforeTheFirstFitTest, NeitherArePredictions) {
  ASSERT_NO_FATAL_FAILURE(TrainAndRestart());
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer
                     .Predict(forward_, test_, {.returns = {"prediction"}},
                              [](const EvaluatedBatch&) { return absl::OkStatus(); })
                     .status());
    EXPECT_THAT(trainer.Fit({.epochs = 3}), HasCode(absl::StatusCode::kFailedPrecondition));
  }
  ExpectThatTheJobIsAsItWas();
}

TEST_F(BeforeTheFirstFitTest, AFunctionOfAGroupDoesNotStandInTheWay) {
  ASSERT_NO_FATAL_FAILURE(TrainAndRestart());
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup());
  MU_ASSERT_OK(ForEachBatch(c(), forward_, test_, {.returns = {"prediction"}, .group = group},
                            [](const EvaluatedBatch&) { return absl::OkStatus(); })
                   .status());
  MU_ASSERT_OK(trainer.Fit({.epochs = 3}).status());
  EXPECT_EQ(Sum(), 3 * kSum);
}

TEST_F(BeforeTheFirstFitTest, AProgramThatBeginsAnewSaysSo) {
  ASSERT_NO_FATAL_FAILURE(TrainAndRestart());
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK(trainer.Evaluate().status());
  c().StartFresh();
  MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  EXPECT_EQ(Sum(), kSum);
  MU_EXPECT_OK(trainer.Save().status());
}

TEST_F(BeforeTheFirstFitTest, AJobThatBeginsMayBeEvaluatedFirst) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK(trainer.Evaluate().status());
  MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
  EXPECT_EQ(Sum(), kSum);
  MU_EXPECT_OK(trainer.Save().status());
}

}  // namespace
}  // namespace mu
