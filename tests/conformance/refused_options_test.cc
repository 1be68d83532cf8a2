// Options that a trainer refuses: nothing is trained, nothing is restored, and nothing is said of
// the run to who follows it.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/env/file.h"
#include "coordinator/cluster/kept_checkpoint.h"
#include "coordinator/training/run_status.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using testing::EvaluatedJobTest;
using ::testing::HasSubstr;
using testing::kSum;
using ::testing::SizeIs;
using testing::StatusIs;

class RefusedOptionsTest : public EvaluatedJobTest {
 protected:
  struct Refused {
    FitOptions options;
    std::string why;
  };
  // That are wrong whatever was trained; with one epoch more than was.
  static std::vector<Refused> Wrong() {
    const auto stopping = [](const EarlyStoppingOptions& options) {
      return FitOptions{.epochs = 2, .early_stopping = options};
    };
    return {
        {stopping({.metric = "mae", .patience = 0}),
         "FitOptions::early_stopping.patience must be at least 1"},
        {stopping({.metric = "mae", .min_delta = -0.5}),
         "FitOptions::early_stopping.min_delta is -0.5, and must not be negative"},
        {stopping({.metric = "mae", .min_delta = std::nan("")}),
         "FitOptions::early_stopping.min_delta is nan"},
        {stopping({.metric = "auc"}), "early_stopping.metric is `auc`, which is not computed"},
        {{.epochs = 2, .keep_best = KeepBestOptions{.metric = "mae", .count = 0}},
         "FitOptions::keep_best.count must be at least 1"},
        {{.epochs = 2,
          .beside = true,
          .values = EvaluatedValues::kCurrent,
          .keep_best = KeepBestOptions{.metric = "mae"}},
         "keep_best keeps the checkpoints"},
        {{.epochs = 2, .eval_every = {.steps = 5, .epochs = 1}},
         "FitOptions::eval_every must have one of steps, epochs and time, not 2"},
        {{.epochs = 2, .eval_every = {.time = -absl::Seconds(1)}},
         "FitOptions::eval_every.time must be above 0"},
        {{.epochs = 2, .loss = "cost"},
         "TrainOptions::loss is 'cost', which function 'step' does not return; it returns: loss"},
        {{.epochs = 2, .max_gap = 0}, "TrainOptions::max_gap is 0"},
        {{.epochs = 2, .steps_per_function = 2, .sync = RoundRules{.replicas = 2}},
         "TrainOptions::steps_per_function is 2, and in synchronous rounds"},
        {{.epochs = 2, .bounded_staleness = 3, .sync = RoundRules{.replicas = 2}},
         "TrainOptions::bounded_staleness is 3, and in synchronous rounds no step is ahead"},
    };
  }
  void ExpectThatTheyAreRefused(Trainer& trainer) {
    for (const Refused& refused : Wrong()) {
      EXPECT_THAT(trainer.Fit(refused.options),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(refused.why)));
    }
    EXPECT_FALSE(c().runtime().rounds().on());
  }
  std::string Run() const { return cluster_->directory(); }
  std::string RunFile() const { return Run() + "/run.json"; }
  void ExpectThatTheRunIsDone() {
    MU_ASSERT_OK_AND_ASSIGN(const std::string status, ReadFile(RunFile()));
    EXPECT_THAT(status, HasSubstr("done"));
    EXPECT_TRUE(RunIsOver(Run()));
  }
};

// The end of the Fit before it is still the run's.
TEST_F(RefusedOptionsTest, SayNothingOfTheRun) {
  {
    Trainer trainer(&c(), Options());
    ExpectThatTheyAreRefused(trainer);
    EXPECT_EQ(Sum(), 0);
  }
  EXPECT_FALSE(FileExists(RunFile())) << "nothing was trained";
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
    ExpectThatTheyAreRefused(trainer);
    EXPECT_THAT(trainer.Fit({.epochs = 1}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                                     HasSubstr("nothing is left to do")));
    EXPECT_FALSE(RunIsOver(Run())) << "the program may ask for something else";
    EXPECT_EQ(Sum(), kSum);
  }
  ExpectThatTheRunIsDone();
  // The program is started again.
  Restart();
  {
    Trainer trainer(&c(), Options());
    ExpectThatTheyAreRefused(trainer);
    EXPECT_TRUE(RunIsOver(Run())) << "whoever follows it does not wait for what does not come";
    EXPECT_EQ(Sum(), 0) << "nothing was restored";
  }
  ExpectThatTheRunIsDone();
}

TEST_F(RefusedOptionsTest, WhatIsKeptStaysThoughNothingIsLeftToTrain) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.epochs = 2, .keep_best = KeepBestOptions{.metric = "mae"}}));
  ASSERT_THAT(result.best, SizeIs(1));
  const std::string best = trainer.PathOf(result.best[0].directory);
  ASSERT_TRUE(IsKept(best));
  EXPECT_THAT(trainer.Fit({.epochs = 2}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nothing is left to do")));
  // Nor do the rounds stay that it asked for.
  EXPECT_THAT(trainer.Fit({.epochs = 2, .sync = RoundRules{.replicas = 2}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("nothing is left to do")));
  EXPECT_FALSE(c().runtime().rounds().on());
  EXPECT_TRUE(IsKept(best));
}

TEST_F(RefusedOptionsTest, DataThatTheFunctionsDoNotRead) {
  const auto expect = [&](TrainerOptions options, const FitOptions& fit, const std::string& why) {
    Trainer trainer(&c(), std::move(options));
    EXPECT_THAT(trainer.Fit(fit), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(why)));
  };
  TrainerOptions options = Options();
  options.evaluation->data = data_;
  expect(options, {.eval_every = {.epochs = 1}},
         "TrainerOptions::evaluation: function 'forward' reads the data set 'test', not 'train'");
  options = Options();
  options.data = test_;
  expect(options, {}, "function 'step' reads the data set 'train', not 'test'");
  options.data = Dataset();
  expect(options, {}, "this Dataset handle is empty");
  options.step = Function();
  expect(options, {}, "not defined by this coordinator");
  EXPECT_EQ(Sum(), 0);
  EXPECT_FALSE(FileExists(RunFile()));
}

TEST_F(RefusedOptionsTest, MoreEpochsThanTheDataHas) {
  TrainerOptions options = Options();
  MU_ASSERT_OK_AND_ASSIGN(options.data,
                          c().CreateDataset(Csv({cluster_->directory() + "/numbers.csv"})
                                                .Id("id", 0, 0)
                                                .Batch(testing::kBatch)
                                                .Epochs(1)
                                                .Name("once")));
  MU_ASSERT_OK_AND_ASSIGN(options.step, c().DefineFunction("once", [&](FunctionBuilder& f) {
    f.Return("loss", ReduceMean(Cast(f.NextBatch(options.data)["id"], kFloat32)));
  }));
  {
    Trainer trainer(&c(), options);
    EXPECT_THAT(trainer.Fit({.epochs = 2}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'once' ends after 1")));
  }
  EXPECT_FALSE(FileExists(RunFile()));
}

}  // namespace
}  // namespace mu
