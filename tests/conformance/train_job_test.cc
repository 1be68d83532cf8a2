// A job file's job from end to end, started as the command line starts it, with what no command
// line can bring about: a model that says no, and settings that the command line refuses.
#include "coordinator/training/train_job.h"

#include <google/protobuf/text_format.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/training/job_record.h"
#include "coordinator/training/run_status.h"
#include "tests/conformance/conformance.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StatusIs;

constexpr int kRecords = 100;

// y is a weight times x.
class Scaled final : public Model {
 public:
  // `most`: with a greater weight, steps fail.
  Scaled(absl::Status fits, std::optional<float> most) : fits_(std::move(fits)), most_(most) {}
  absl::Status Create(VariableFactory& factory) override {
    MU_RETURN_IF_ERROR(fits_);
    MU_ASSIGN_OR_RETURN(weight_, factory.CreateVariable({.name = "weight", .shape = {1}}));
    return absl::OkStatus();
  }
  ModelOutput Build(FunctionBuilder&, const BatchRef& batch) override {
    ModelOutput output;
    output.task = task();
    output.prediction = batch["x"] * Read(weight_);
    output.label = batch["y"];
    output.loss = MeanSquaredError(output.prediction, output.label);
    if (most_.has_value())
      output.loss = output.loss + ReduceSum(Log(Read(weight_) * -1.0f + *most_)) * 0.0f;
    return output;
  }
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override {
    return {MakeColumn("x", kFloat32, {kUnknownDim}), MakeColumn("y", kFloat32, {kUnknownDim})};
  }

 private:
  const absl::Status fits_;
  const std::optional<float> most_;
  Variable weight_;
};

class TrainJobTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    std::string data = "x,y\n";
    for (int i = 0; i < kRecords; ++i) absl::StrAppend(&data, i % 10, ",", 2 * (i % 10), "\n");
    const std::string file = directory_->path() + "/data.csv";
    MU_ASSERT_OK(WriteFileAtomic(file, data));
    const std::string source = absl::StrCat(
        "{ format: 'csv' files: '", file,
        "' columns { name: 'x' kind: 'number' } columns { name: 'y' kind: 'number' } }");
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("name: 'scaled' seed: 1 data { train ", source, " eval ", source,
                     "} model { custom { name: 'scaled' } } "
                     "optimizer { sgd { learning_rate: 0.01 } } "
                     "training { epochs: 1 batch_size: 10 }"),
        &job_));
    MU_ASSERT_OK(models_.RegisterJson(
        "scaled", [this](const std::string&) -> absl::StatusOr<std::unique_ptr<Model>> {
          if (on_model_) on_model_();
          return std::make_unique<Scaled>(++made_ == 1 ? own_ : others_, most_);
        }));
  }
  absl::Status Train() {
    RunOptions options;
    options.job_dir = run_;
    options.binary_dir = testing::BinaryDirectory();
    options.workers = options.ps = 1;
    options.train_again = train_again_;
    options.announce = [this](const std::string& text) { announced_.push_back(text); };
    MU_RETURN_IF_ERROR(MakeJobDirectory(options.job_dir));
    absl::Status error;
    report_ = TrainJob(job_, models_, options, &error);
    return error;
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("train-job");
  pb::JobProto job_;
  ModelRegistry models_;
  RunReport report_;
  const std::string run_ = directory_.ok() ? directory_->path() + "/run" : "";
  absl::Status own_, others_;  // of the first model, which is the job's own; of others
  std::optional<float> most_;
  std::function<void()> on_model_;
  bool train_again_ = false;
  std::vector<std::string> announced_;

 private:
  int made_ = 0;
};

// The model has no room in this process, say: that is no reason to lose the job.
TEST_F(TrainJobTest, WorkersEvaluateWhatTheCoordinatorCannot) {
  job_.mutable_evaluation()->set_where("coordinator");
  others_ = absl::ResourceExhaustedError("no room for it");
  MU_EXPECT_OK(Train());
  EXPECT_EQ(report_.status, "done");
  EXPECT_EQ(report_.eval_examples, static_cast<uint64_t>(kRecords));
  EXPECT_TRUE(report_.eval_metrics.contains("rmse"));
  EXPECT_THAT(report_.warnings,
              Contains(HasSubstr("the coordinator's process cannot evaluate, so the workers do: "
                                 "no room for it")));
}

// As where its folder for unpacked files cannot be made.
TEST_F(TrainJobTest, WorkersEvaluateWhereTheCoordinatorsMachineIsAtFault) {
  job_.mutable_evaluation()->set_where("coordinator");
  others_ = WithKind(absl::InvalidArgumentError("not a directory"), pb::ERROR_MACHINE);
  MU_EXPECT_OK(Train());
  EXPECT_EQ(report_.eval_examples, static_cast<uint64_t>(kRecords));
  EXPECT_THAT(report_.warnings, Contains(HasSubstr("so the workers do: not a directory")));
}

TEST_F(TrainJobTest, WhatCannotBeEvaluatedAnywhereIsTheJobsError) {
  job_.mutable_evaluation()->set_where("coordinator");
  others_ = absl::InvalidArgumentError("no such column");
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such column")));
}

TEST_F(TrainJobTest, AnEvaluationOnTheWayThatFailsIsAWarning) {
  job_.mutable_evaluation()->set_where("coordinator");
  job_.mutable_training()->mutable_eval_every()->set_epochs(1);
  others_ = absl::ResourceExhaustedError("no room for it");
  MU_EXPECT_OK(Train());
  EXPECT_EQ(report_.status, "done");
  EXPECT_THAT(report_.warnings,
              Contains(HasSubstr("an evaluation failed, training goes on: no room for it")));
}

TEST_F(TrainJobTest, AnEvaluationOnTheWayThatFailsEndsTheRunIfTheJobSaysSo) {
  job_.mutable_evaluation()->set_where("coordinator");
  job_.mutable_evaluation()->set_on_error("stop");
  job_.mutable_training()->mutable_eval_every()->set_epochs(1);
  others_ = absl::ResourceExhaustedError("no room for it");
  EXPECT_THAT(Train(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("training has ended, since evaluation.on_error is stop; the "
                                       "job can be continued"),
                             HasSubstr("the evaluation after 10 steps, in epoch 1, failed: "
                                       "no room for it"))));
  EXPECT_EQ(report_.status, "failed");
  EXPECT_TRUE(report_.ended_by_evaluation);
  others_ = absl::OkStatus();
  MU_EXPECT_OK(Train());
  EXPECT_EQ(report_.status, "done");
  EXPECT_FALSE(report_.ended_by_evaluation);
  EXPECT_EQ(report_.steps, 10u);
  ASSERT_EQ(report_.evaluations.size(), 1u);
  EXPECT_EQ(report_.evaluations[0].steps, 10u);
  EXPECT_THAT(announced_, Contains(HasSubstr("it CONTINUES from ")));
}

// In the third epoch, which the weight ends at 0.32, from 0.22.
TEST_F(TrainJobTest, TheReportOfARunThatFailsSaysWhatWasTrained) {
  job_.mutable_training()->set_epochs(5);
  job_.mutable_training()->set_warmup_steps("0");
  job_.mutable_optimizer()->mutable_sgd()->set_learning_rate(1e-4f);
  job_.mutable_checkpoint()->mutable_keep_best()->set_metric("rmse");
  job_.mutable_early_stopping()->set_metric("rmse");
  most_ = 0.265f;
  const absl::Status error = Train();
  EXPECT_THAT(std::string(error.message()), HasSubstr("logarithm of a negative number"));
  EXPECT_EQ(report_.status, "failed");
  EXPECT_FALSE(report_.ended_by_evaluation);
  ASSERT_GE(report_.epochs.size(), 2u);
  EXPECT_LE(report_.epochs.size(), 3u) << "the third one if a result of it came";
  EXPECT_EQ(report_.epochs[0].samples, uint64_t{kRecords});
  EXPECT_EQ(report_.epochs[1].samples, uint64_t{kRecords});
  ASSERT_EQ(report_.evaluations.size(), 2u);
  EXPECT_EQ(report_.evaluations[1].steps, 20u);
  const std::string& newest = report_.evaluations[1].checkpoint;
  EXPECT_TRUE(FileExists(JoinPath(newest, kManifestName))) << newest;
  ASSERT_EQ(report_.best_checkpoints.size(), 1u);
  EXPECT_EQ(report_.best_checkpoints[0].directory, newest);
  EXPECT_EQ(report_.best_checkpoints[0].steps, 20u);
  ASSERT_TRUE(report_.early_stopping.has_value());
  EXPECT_EQ(report_.early_stopping->state.best_checkpoint, newest);
  EXPECT_FALSE(report_.early_stopping->restored_best);
  EXPECT_GE(report_.steps, 20u);
  EXPECT_LT(report_.steps, 30u);
  EXPECT_GE(report_.functions, 2u);
  EXPECT_GT(report_.train_seconds, 0);
  EXPECT_TRUE(std::isnan(report_.train_loss));
}

// Who follows the run goes by the job's record, whatever a program has left there before.
TEST_F(TrainJobTest, TheRecordSaysThatTheRunIsOver) {
  MU_ASSERT_OK(MarkRun(run_, RunStatus::kRunning));
  MU_EXPECT_OK(Train());
  EXPECT_TRUE(RunIsOver(run_));
  EXPECT_FALSE(FileExists(run_ + "/run.json")) << "its trainer leaves none";
}

// As a program leaves them: there is no record of a job.
TEST_F(TrainJobTest, CheckpointsOfAProgramAreNotDeletedUnasked) {
  const std::string first = run_ + "/checkpoints/ckpt-00000001";
  MU_ASSERT_OK(MakeDirectories(first));
  pb::CheckpointProto manifest;
  manifest.set_format_version(kCheckpointFormat);
  MU_ASSERT_OK(WriteManifest(first, manifest));
  EXPECT_THAT(Train(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("those of a program")));
  EXPECT_TRUE(report_.refused);
  EXPECT_FALSE(FileExists(run_ + "/job.json")) << "the next one is refused as well";
  MU_ASSERT_OK_AND_ASSIGN(const auto kept, ListCheckpoints(run_ + "/checkpoints"));
  EXPECT_THAT(kept, ElementsAre(first));
  train_again_ = true;
  MU_EXPECT_OK(Train());
  EXPECT_EQ(report_.status, "done");
  EXPECT_THAT(announced_, Contains(AllOf(HasSubstr("holds checkpoints that no job has taken"),
                                         HasSubstr("a new run BEGINS"))));
}

// Who is started together with the job does not end by what an earlier run has left.
TEST_F(TrainJobTest, TheRunIsNotOverWhileItStarts) {
  int asked = 0;
  on_model_ = [&] {
    ++asked;
    EXPECT_FALSE(RunIsOver(run_));
  };
  MU_ASSERT_OK(MakeDirectories(run_));
  MU_ASSERT_OK(WriteJobRecord(run_, {.status = "failed", .job = job_}));
  MU_EXPECT_OK(Train());
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(RunIsOver(run_));
  // Of a job that is done, and of a program.
  train_again_ = true;
  MU_ASSERT_OK(MarkRun(run_, RunStatus::kDone));
  MU_EXPECT_OK(Train());
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(report_.status, "done");
  EXPECT_TRUE(RunIsOver(run_));
}

// Nobody tries again, so nobody need wait.
TEST_F(TrainJobTest, ARunThatCannotStartIsOverAsTheEarlierOneWas) {
  MU_ASSERT_OK(MakeDirectories(run_));
  MU_ASSERT_OK(WriteJobRecord(run_, {.status = "done", .first_epoch = 3, .job = job_}));
  train_again_ = true;
  own_ = absl::InvalidArgumentError("no such layer");
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no such layer")));
  EXPECT_TRUE(RunIsOver(run_));
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord record, ReadJobRecord(run_));
  EXPECT_EQ(record.status, "done");
  EXPECT_EQ(record.first_epoch, 3u);
  EXPECT_TRUE(report_.earlier_stays_done) << "its report stays";
}

// As one that was killed while it started: whoever starts the job without --train_again ends it.
TEST_F(TrainJobTest, AJobThatIsDoneIsNotStartingAnyMore) {
  MU_ASSERT_OK(MakeDirectories(run_));
  MU_ASSERT_OK(WriteJobRecord(run_, {.status = "done", .starting = true, .job = job_}));
  ASSERT_FALSE(RunIsOver(run_));
  MU_EXPECT_OK(Train());
  EXPECT_THAT(announced_, Contains(HasSubstr("it is done: nothing is trained")));
  EXPECT_TRUE(RunIsOver(run_));
}

// How a gap that is none shows that it came there.
TEST_F(TrainJobTest, TheGapIsTheJobs) {
  job_.mutable_training()->set_max_gap(1.5);
  EXPECT_THAT(Train(), StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("TrainOptions::max_gap is 1.5")));
  EXPECT_EQ(report_.samples, 0u);
}

// 10 batches of an epoch are one lease: two rounds of four steps and one of two.
class TrainJobInRounds : public TrainJobTest {
 protected:
  static constexpr uint64_t kRounds = 9;  // of 3 epochs; 30 steps by 4 would be 8

  void SetUp() override {
    TrainJobTest::SetUp();
    job_.mutable_training()->set_epochs(3);
    job_.mutable_training()->set_mode("sync");
    job_.mutable_training()->mutable_sync()->set_replicas(4);
    job_.mutable_training()->mutable_schedule()->mutable_cosine();
  }
};

// Warm-up and schedule are made with this number.
TEST_F(TrainJobInRounds, TheScheduleHasAsManyStepsAsThereAreRounds) {
  MU_ASSERT_OK(Train());
  ASSERT_TRUE(report_.sync.has_value());
  EXPECT_EQ(report_.sync->rounds.committed, kRounds);
  MU_ASSERT_OK_AND_ASSIGN(const JobRecord record, ReadJobRecord(run_));
  EXPECT_EQ(record.rounds, kRounds);
}

// As if the job file gave that number; one less makes a difference of some percent.
TEST_F(TrainJobInRounds, TheScheduleEndsWithTheLastRound) {
  job_.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.001f);
  const auto rmse = [&](uint64_t steps) {
    if (steps > 0) job_.mutable_training()->mutable_schedule()->mutable_cosine()->set_steps(steps);
    MU_EXPECT_OK(Train());
    train_again_ = true;
    return report_.eval_metrics.contains("rmse") ? report_.eval_metrics.at("rmse") : NAN;
  };
  const double open = rmse(0), closed = rmse(kRounds), shorter = rmse(kRounds - 1);
  EXPECT_NEAR(open, closed, 1e-4 * closed);
  EXPECT_GT(shorter, 1.01 * closed);
}

// Its function must be the same. Earlier programs wrote down no number.
TEST_F(TrainJobInRounds, AContinuedRunKeepsTheNumberThatItBeganWith) {
  job_.mutable_evaluation()->set_where("coordinator");
  job_.mutable_evaluation()->set_on_error("stop");
  job_.mutable_training()->mutable_eval_every()->set_epochs(1);
  // So that nothing in flight depends on the number, which changes below.
  job_.mutable_training()->clear_schedule();
  job_.mutable_training()->set_warmup_steps("0");
  others_ = absl::ResourceExhaustedError("no room for it");
  EXPECT_THAT(Train(), testing::HasCode(absl::StatusCode::kResourceExhausted));
  MU_ASSERT_OK_AND_ASSIGN(JobRecord record, ReadJobRecord(run_));
  EXPECT_EQ(record.rounds, kRounds);
  record.rounds = 0;
  MU_ASSERT_OK(WriteJobRecord(run_, record));
  others_ = absl::OkStatus();
  MU_ASSERT_OK(Train());
  EXPECT_THAT(announced_, Contains(HasSubstr("it CONTINUES from ")));
  EXPECT_EQ(report_.steps, 30u);
  MU_ASSERT_OK_AND_ASSIGN(record, ReadJobRecord(run_));
  EXPECT_EQ(record.rounds, 0u) << "it was counted as for a run that begins";
}

}  // namespace
}  // namespace mu
