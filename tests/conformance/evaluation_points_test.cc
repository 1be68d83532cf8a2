// Training that stands still for evaluations, by the loop and by the trainer.
#include <optional>
#include <utility>

#include "common/base/steady_now.h"
#include "common/base/version.h"
#include "common/obs/metrics.h"
#include "common/rpc/typed.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/values_moment.h"
#include "proto/coordinator.pb.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBatch;
using testing::kRecords;
using testing::kSum;
using ::testing::Not;
using ::testing::SizeIs;
using testing::StatusIs;
using testing::WriteFile;

class EvaluationPointsTest : public EvaluatedJobTest {};

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

// The time of evaluations is not training's, whatever ends it.
TEST_F(EvaluationPointsTest, WhatWasDoneIsToldBeforeAnError) {
  std::optional<TrainResult> done;
  absl::Duration evaluating;
  const absl::Time begin = SteadyNow();
  const absl::StatusOr<TrainResult> result =
      Train(c(), step_, data_,
            {.epochs = 3,
             .steps_per_function = 2,
             .eval_every = {.epochs = 1},
             .evaluate = [&](const EvaluationPoint& at) -> absl::StatusOr<bool> {
               const absl::Time begun = SteadyNow();
               for (int i = 0; i < 50; ++i) EXPECT_EQ(Sum(), at.epoch * kSum);
               evaluating += SteadyNow() - begun;
               if (at.epoch == 2) return absl::DataLossError("the second one fails");
               return true;
             },
             .on_failure = [&](const TrainResult& so_far) { done = so_far; }});
  const absl::Duration all = SteadyNow() - begin;
  EXPECT_THAT(result.status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the second one fails")));
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->steps, 20u);
  EXPECT_EQ(done->samples, uint64_t{2 * kRecords});
  EXPECT_GE(done->functions, 10u);
  EXPECT_THAT(done->epochs, SizeIs(2));
  EXPECT_GT(done->seconds, 0);
  EXPECT_LE(done->seconds, absl::ToDoubleSeconds(all - evaluating));
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
  MU_ASSERT_OK_AND_ASSIGN(const std::string saved, trainer.Save());
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(saved));
  EXPECT_EQ(manifest.steps(), 50u) << "of the job";
  EXPECT_EQ(MomentOfValues(manifest).steps, 30u);
  EXPECT_EQ(MomentOfValues(manifest).epoch, 3u);
  ASSERT_THAT(result.best, SizeIs(3));
  EXPECT_EQ(result.best[0].directory, result.early_stopping->best_checkpoint);
  for (const BestCheckpoint& best : result.best)
    EXPECT_TRUE(FileExists(trainer.PathOf(best.directory))) << best.directory;
  // Training goes on from the best values.
  MU_ASSERT_OK(trainer.Fit({.epochs = 6}).status());
  EXPECT_EQ(Sum(), 4 * kSum);
  MU_ASSERT_OK_AND_ASSIGN(const std::string later, trainer.Save());
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto newest, ReadManifest(later));
  EXPECT_EQ(MomentOfValues(newest).steps, 60u);
  EXPECT_EQ(MomentOfValues(newest).epoch, 6u);
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

// More than are listed one by one. While place 0 is empty too, nothing is restored for those that
// come and go at place 1.
TEST_F(EvaluationPointsTest, AServerLostMeanwhileIsNoticedAfterManyOthers) {
  TrainerOptions options = Options();
  int evaluated = 0;
  bool killed = false;
  options.callbacks.on_evaluation = [&](const Evaluation&) { ++evaluated; };
  options.callbacks.on_evaluation_progress = [&](uint64_t, uint64_t) {
    if (evaluated != 1 || std::exchange(killed, true)) return;
    cluster_->KillServer(1);
    MU_EXPECT_OK(cluster_->StartServer(1));
  };
  Trainer trainer(&c(), std::move(options));  // from here on losses are survived
  ASSERT_EQ(Sum(), 0) << "the servers have all that they need";
  for (const int server : {0, 1}) cluster_->KillServer(server);
  const std::unique_ptr<Transport> transport = NewGrpcTransport();
  const auto coordinator = transport->Connect(c().address(), pb::ROLE_COORDINATOR);
  for (uint32_t i = 1; i <= FailureList::kFirst + FailureList::kLast; ++i) {
    constexpr int64_t kNoPid = int64_t{1} << 30;  // and those above it: Linux has none so large
    pb::RegisterRequest request;
    request.set_role(pb::ROLE_PSSERVER);
    request.set_index(1);
    request.set_address("127.0.0.1:1");
    request.set_incarnation(i);
    request.set_protocol(kProtocol);
    request.set_pid(kNoPid + i);
    MU_ASSERT_OK(Call<pb::RegisterReply>(*coordinator, "/muster.Coordinator/Register", request));
    c().runtime().DaemonDied(kNoPid + i, "killed by the test");
  }
  for (const int server : {0, 1}) MU_ASSERT_OK(cluster_->StartServer(server));
  ASSERT_EQ(c().Stats().unlisted_failures.servers, 2u);
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
  EXPECT_TRUE(killed);
  EXPECT_EQ(c().Stats().unlisted_failures.servers, 3u);
  ASSERT_THAT(result.evaluations, SizeIs(2));
  EXPECT_THAT(result.evaluations[0].checkpoint, IsEmpty());
  EXPECT_THAT(result.evaluations[1].checkpoint, Not(IsEmpty())) << "it began anew, from one";
  EXPECT_NEAR(result.evaluations[1].metrics.at("mae"), 1, 1e-5);
  EXPECT_EQ(Sum(), 2 * kSum);
}

// Steps run again then, and where several workers push, other values come of them.
TEST_F(EvaluationPointsTest, TheLastOneHoldsUntilAServerIsLost) {
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
  ASSERT_TRUE(result.last.has_value());
  ASSERT_THAT(result.last->checkpoint, IsEmpty());
  EXPECT_TRUE(trainer.StillHolds(*result.last));
  cluster_->KillServer(1);
  MU_ASSERT_OK(cluster_->StartServer(1));
  MU_ASSERT_OK(trainer.Save().status());
  EXPECT_FALSE(trainer.StillHolds(*result.last));
  Evaluation restored = *result.last;
  restored.checkpoint = "ckpt-00000001";
  EXPECT_TRUE(trainer.StillHolds(restored)) << "servers went back to these values";
}

// Steps run again after the evaluation of the end.
TEST_F(EvaluationPointsTest, TheLastOneDoesNotHoldIfAServerIsLostBeforeFitEnds) {
  TrainerOptions options = Options();
  options.callbacks.on_evaluation = [&](const Evaluation& evaluation) {
    if (evaluation.steps != 20) return;
    cluster_->KillServer(1);
    MU_EXPECT_OK(cluster_->StartServer(1));
    testing::WaitWhile([&] { return c().Stats().failures.empty(); });
  };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
  EXPECT_THAT(result.evaluations, SizeIs(2));
  EXPECT_FALSE(result.last.has_value());
  EXPECT_EQ(Sum(), 2 * kSum);
}

// The process before may have had other data or other metrics.
TEST_F(EvaluationPointsTest, TheLastOneOfAContinuedJobIsNotThatOfTheProcessBefore) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  Restart();
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
  EXPECT_THAT(result.evaluations, SizeIs(2));
  EXPECT_FALSE(result.last.has_value());
}

// Its steps run again since a server was lost, and the checkpoint lacks them.
TEST_F(EvaluationPointsTest, TheLastOneOfAContinuedJobDoesNotHoldIfStepsRunAgain) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}).status());
    for (const int worker : {0, 1}) cluster_->KillWorker(worker);
    cluster_->KillServer(1);
    MU_ASSERT_OK(cluster_->StartServer(1));
    MU_ASSERT_OK_AND_ASSIGN(const std::string taken, trainer.checkpointer()->TakeNow());
    MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(taken));
    ASSERT_GT(manifest.position().functions_size(), 0);
  }
  for (const int worker : {0, 1}) MU_ASSERT_OK(cluster_->StartWorker(worker));
  Restart();
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}));
  EXPECT_FALSE(result.last.has_value());
  EXPECT_THAT(result.evaluations, SizeIs(2));
  EXPECT_EQ(Sum(), 2 * kSum);
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

// Else those that still read the data would stand in the way of the next one.
TEST_F(EvaluationPointsTest, AfterACallersErrorNoFunctionOfAnEvaluationRuns) {
  MU_ASSERT_OK_AND_ASSIGN(const Function slow, DefineSlow());
  const auto fails = [](const EvaluatedBatch&) { return absl::DataLossError("the disk is full"); };
  const auto counts = [](const EvaluatedBatch&) { return absl::OkStatus(); };
  ForEachBatchOptions options = {.returns = {"prediction"}, .steps_per_function = 1};
  EXPECT_THAT(ForEachBatch(c(), slow, test_, options, fails),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the disk is full")));
  EXPECT_EQ(c().Stats().unfinished, 0u);
  MU_ASSERT_OK_AND_ASSIGN(const uint64_t records,
                          ForEachBatch(c(), forward_, test_, options, counts));
  EXPECT_EQ(records, uint64_t{kRecords});
  // The same in a group, which does not wait.
  MU_ASSERT_OK_AND_ASSIGN(options.group, c().CreateGroup());
  EXPECT_THAT(ForEachBatch(c(), slow, test_, options, fails), HasCode(absl::StatusCode::kDataLoss));
  MU_ASSERT_OK(c().Join(options.group));
  MU_EXPECT_OK(ForEachBatch(c(), forward_, test_, options, counts).status());
}

// What `coordinator status` and /metrics say of the job, also of one that is continued.
TEST_F(EvaluationPointsTest, StepsOfEvaluationsAreNoneOfTheJobs) {
  const auto job_steps = [&] {
    MetricList list;
    c().runtime().AddMetrics(&list);
    return list.families().at("muster_job_steps").samples.at(0).value;
  };
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 2, .eval_every = {.epochs = 1}}).status());
    const pb::GetStatusReply status = c().runtime().Status();
    EXPECT_EQ(status.steps(), uint64_t{2 * kRecords / kBatch});
    EXPECT_EQ(status.samples(), uint64_t{2 * kRecords});
    EXPECT_GT(status.samples_per_second(), 0);
    EXPECT_EQ(job_steps(), 2 * kRecords / kBatch);
    MU_ASSERT_OK(trainer.Save().status());
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  Trainer trainer(&c(), Options());
  MU_ASSERT_OK(c().Restore().status());
  const pb::GetStatusReply status = c().runtime().Status();
  EXPECT_EQ(status.steps(), uint64_t{2 * kRecords / kBatch});
  EXPECT_EQ(status.samples(), uint64_t{2 * kRecords});
  EXPECT_EQ(status.samples_per_second(), 0) << "this coordinator has done nothing yet";
  EXPECT_EQ(job_steps(), 2 * kRecords / kBatch);
}

}  // namespace
}  // namespace mu
