// Jobs that are continued where nothing is left to train, with other options or other data: which
// values they end with, and what is said of them.
#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/values_moment.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kRecords;
using testing::kSum;
using testing::Numbers;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::WriteFile;

class ContinuedAtItsEndTest : public EvaluatedJobTest {
 protected:
  TrainerOptions WithWarnings() {
    TrainerOptions options = Options();
    options.callbacks.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    return options;
  }
  // Of three epochs each is worse than the one before by "mae" (1, 1.59, 2.18) and better by "rmse"
  // (10, 6.1, 2.8): one record of a hundred comes nearer, the others go away.
  absl::StatusOr<TrainerOptions> Opposed() {
    TrainerOptions options = WithWarnings();
    options.evaluation->metrics = {"mae", "rmse"};
    MU_ASSIGN_OR_RETURN(
        options.evaluation->function, c().DefineFunction("opposed", [&](FunctionBuilder& f) {
          const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
          const Sym epochs = Cast(Read(sum_), kFloat32) / static_cast<float>(kSum);
          const Sym one = Maximum(id * -1.0f + 1.0f, 0.0f);
          const Sym others = one * -1.0f + 1.0f;
          f.Return("prediction", one * (epochs * -40.0f + 140.0f) + others * (epochs - 1.0f));
          f.Return("label", id * 0.0f);
        }));
    return options;
  }
  static FitOptions StoppingBy(const std::string& metric, bool restore_best = true) {
    return {.epochs = 3,
            .early_stopping = EarlyStoppingOptions{
                .metric = metric, .patience = 10, .restore_best = restore_best}};
  }
  // Three epochs; then the values of the first one, which are the best by "mae", are brought back
  // and saved, and another coordinator is there.
  void BringBackTheFirstEpoch() {
    {
      MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Opposed());
      Trainer trainer(&c(), std::move(options));
      MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(StoppingBy("mae")));
      ASSERT_TRUE(result.restored_best);
      ASSERT_TRUE(result.last.has_value());
      ASSERT_EQ(result.last->steps, 10u);
      ASSERT_EQ(Sum(), kSum);
      MU_ASSERT_OK(trainer.Save().status());
    }
    Restart();
  }
  // Each of so many epochs is evaluated.
  static FitOptions EachOf(uint32_t epochs, FitOptions fit = {}) {
    fit.epochs = epochs;
    fit.eval_every = {.epochs = 1};
    return fit;
  }
  // As `options`, of fewer records.
  absl::StatusOr<TrainerOptions> OfFew(TrainerOptions options, int64_t records) {
    const std::string file = cluster_->directory() + "/few.csv";
    WriteFile(file, Numbers(0, records));
    MU_ASSIGN_OR_RETURN(
        options.evaluation->data,
        c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(10).Epochs(1).Name("few")));
    MU_ASSIGN_OR_RETURN(
        options.evaluation->function, c().DefineFunction("forward_few", [&](FunctionBuilder& f) {
          const Sym id = Cast(f.NextBatch(options.evaluation->data)["id"], kFloat32);
          f.Return("prediction", id * 0.0f + Cast(Read(sum_), kFloat32));
          f.Return("label", id * 0.0f);
        }));
    return options;
  }

  std::vector<std::string> warnings_;
};

TEST_F(ContinuedAtItsEndTest, TheBestByAnotherMetricIsThatOfTheLastStep) {
  ASSERT_NO_FATAL_FAILURE(BringBackTheFirstEpoch());
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Opposed());
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(StoppingBy("rmse")));
  EXPECT_EQ(result.early_stopping->best_steps, 30u);
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(Sum(), 3 * kSum) << "its values are loaded";
  EXPECT_FALSE(result.last.has_value()) << "this trainer has evaluated nothing";
  MU_ASSERT_OK_AND_ASSIGN(const Evaluation now, trainer.Evaluate());
  EXPECT_NEAR(now.metrics.at("rmse"), result.early_stopping->best, 1e-4);
  EXPECT_THAT(result.evaluations, SizeIs(3));
  EXPECT_THAT(warnings_, IsEmpty());
  MU_ASSERT_OK_AND_ASSIGN(const std::string saved, trainer.Save());
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(saved));
  EXPECT_EQ(MomentOfValues(manifest).steps, 30u);
}

// They are neither loaded nor evaluated as those of the last step.
TEST_F(ContinuedAtItsEndTest, WhatWasBroughtBackStays) {
  ASSERT_NO_FATAL_FAILURE(BringBackTheFirstEpoch());
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Opposed());
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(StoppingBy("mae")));
  EXPECT_TRUE(result.restored_best);
  EXPECT_EQ(result.early_stopping->best_steps, 10u);
  EXPECT_EQ(result.early_stopping->waits, 2u);
  ASSERT_THAT(result.evaluations, SizeIs(3));
  EXPECT_NEAR(result.evaluations[2].metrics.at("rmse"), 2.8, 0.1);
  EXPECT_FALSE(result.last.has_value());
  EXPECT_EQ(Sum(), kSum);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ContinuedAtItsEndTest, AWarningNamesTheValuesThatNothingAsksForAnyMore) {
  ASSERT_NO_FATAL_FAILURE(BringBackTheFirstEpoch());
  for (const FitOptions& fit : {StoppingBy("mae", /*restore_best=*/false), EachOf(3)}) {
    SCOPED_TRACE(fit.early_stopping.has_value());
    warnings_.clear();
    MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Opposed());
    {
      Trainer trainer(&c(), std::move(options));
      MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
      EXPECT_FALSE(result.restored_best);
      EXPECT_FALSE(result.last.has_value()) << "the last evaluation is of other values";
      EXPECT_THAT(result.evaluations, SizeIs(3));
      MU_ASSERT_OK_AND_ASSIGN(const Evaluation now, trainer.Evaluate());
      EXPECT_NEAR(now.metrics.at("mae"), 1, 1e-4);
      EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("the values are those of step 10, "),
                                               HasSubstr("not those of the last step, 30; "),
                                               HasSubstr("; the last ones are in "))));
    }
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
}

// In one program, which is told to stop later or not at all.
TEST_F(ContinuedAtItsEndTest, ASecondFitKnowsTheEvaluationOfTheValuesThatItHas) {
  Trainer trainer(&c(), WithWarnings());
  const auto fit = [&](bool restore_best) {
    return trainer.Fit({.epochs = 20,
                        .early_stopping = EarlyStoppingOptions{
                            .metric = "mae", .patience = 2, .restore_best = restore_best}});
  };
  MU_ASSERT_OK_AND_ASSIGN(const FitResult first, fit(true));
  ASSERT_TRUE(first.stopped_early);
  ASSERT_EQ(Sum(), 3 * kSum);
  for (const bool restore_best : {true, false}) {
    SCOPED_TRACE(restore_best);
    MU_ASSERT_OK_AND_ASSIGN(const FitResult second, fit(restore_best));
    EXPECT_EQ(second.restored_best, restore_best);
    ASSERT_TRUE(second.last.has_value());
    EXPECT_EQ(second.last->steps, 30u);
    EXPECT_EQ(Sum(), 3 * kSum);
    EXPECT_THAT(warnings_, SizeIs(restore_best ? 0 : 1));
  }
}

// The evaluation of the process before is of other records.
TEST_F(ContinuedAtItsEndTest, TheLastEvaluationIsOfTheDataOfNow) {
  const FitOptions fit = EachOf(4, {.early_stopping = EarlyStoppingOptions{
                                        .metric = "mae", .patience = 9, .restore_best = false}});
  {
    Trainer trainer(&c(), WithWarnings());
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
    ASSERT_EQ(result.early_stopping->waits, 1u);
    MU_ASSERT_OK(trainer.Save().status());
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  {
    MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, OfFew(WithWarnings(), 40));
    Trainer trainer(&c(), std::move(options));
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
    ASSERT_TRUE(result.last.has_value());
    EXPECT_EQ(result.last->examples, 40u);
    EXPECT_EQ(result.last->steps, 40u);
    ASSERT_THAT(result.evaluations, SizeIs(4)) << "in place of the one before";
    EXPECT_EQ(result.evaluations[3].examples, 40u);
    EXPECT_EQ(result.evaluations[2].examples, static_cast<uint64_t>(kRecords));
    EXPECT_EQ(result.early_stopping->waits, 1u) << "it counts once";
    EXPECT_EQ(result.early_stopping->best_steps, 30u);
    MU_ASSERT_OK(trainer.Save().status());
  }
  // Where nothing depends on it, whoever wants it asks for it.
  ASSERT_NO_FATAL_FAILURE(Restart());
  MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, OfFew(WithWarnings(), 40));
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(EachOf(4)));
  EXPECT_FALSE(result.last.has_value());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(ContinuedAtItsEndTest, TheEndIsKeptAsTheBestByAnotherMetricOnce) {
  const auto keeping = [](const std::string& metric) {
    return EachOf(3, {.keep_best = KeepBestOptions{.metric = metric, .count = 2}});
  };
  for (const char* metric : {"mae", "rmse", "rmse"}) {
    SCOPED_TRACE(metric);
    MU_ASSERT_OK_AND_ASSIGN(TrainerOptions options, Opposed());
    {
      Trainer trainer(&c(), std::move(options));
      MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(keeping(metric)));
      EXPECT_THAT(result.evaluations, SizeIs(3));
      if (metric == std::string("rmse")) {
        ASSERT_THAT(result.best, SizeIs(1)) << "others were not kept for it";
        EXPECT_EQ(result.best[0].steps, 30u);
        EXPECT_TRUE(FileExists(trainer.PathOf(result.best[0].directory)));
      }
      ASSERT_TRUE(result.last.has_value());
      EXPECT_EQ(result.last->steps, 30u);
      MU_ASSERT_OK(trainer.Save().status());
    }
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

// That says nothing of the model.
TEST_F(ContinuedAtItsEndTest, AnEvaluationWithoutAGoodRecordIsAnError) {
  const std::string file = cluster_->directory() + "/bad.csv";
  WriteFile(file, "no number\n");
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset bad,
      c().CreateDataset(
          Csv({file}).Id("id", 0, 0).Batch(10).Epochs(1).SkipBadRecords().Name("bad")));
  TrainerOptions options = WithWarnings();
  options.evaluation->data = bad;
  MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function,
                          c().DefineFunction("forward_bad", [&](FunctionBuilder& f) {
                            const Sym id = Cast(f.NextBatch(bad)["id"], kFloat32);
                            f.Return("prediction", id);
                            f.Return("label", id);
                          }));
  Trainer trainer(&c(), std::move(options));
  uint32_t epochs = 0;
  for (const bool beside : {false, true}) {
    SCOPED_TRACE(beside);
    warnings_.clear();
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                            trainer.Fit(EachOf(++epochs, {.beside = beside})));
    EXPECT_THAT(result.evaluations, IsEmpty());
    EXPECT_THAT(warnings_, Contains(HasSubstr("an evaluation failed, training goes on: bad has no "
                                              "good record")));
    FitOptions stopping = EachOf(++epochs, StoppingBy("mae"));
    stopping.beside = beside;
    EXPECT_THAT(trainer.Fit(stopping), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("failed: bad has no good record")));
    EXPECT_TRUE(trainer.evaluation_failed());
  }
}

}  // namespace
}  // namespace mu
