// What a trainer tells while it trains, and that it tells it then.
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "tests/conformance/evaluated_job.h"

namespace mu {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::EvaluatedJobTest;
using ::testing::Ge;
using testing::HasCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kBatch;
using testing::kRecords;
using testing::kSum;
using ::testing::Not;
using ::testing::SizeIs;

class TrainerCallbacksTest : public EvaluatedJobTest {
 protected:
  ~TrainerCallbacksTest() override {
    over_.Notify();
    if (rescue_.joinable()) rescue_.join();
  }
  TrainerOptions WithoutCheckpoints() {
    TrainerOptions options = Options();
    options.checkpoints.reset();
    return options;
  }
  // From here on nobody trains until on_failure has told of both. If it never does, the test ends
  // after a while all the same.
  void KillWorkers() {
    for (const int worker : {0, 1}) cluster_->KillWorker(worker);
    rescue_ = std::thread([this] {
      if (!over_.WaitFor(absl::Seconds(60))) stop_ = 1;
    });
  }
  void OnFailure(const MemberFailure& failure) {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    EXPECT_EQ(failure.role, pb::ROLE_WORKER);
    if (++told_ != 2) return;
    for (const int worker : {0, 1}) MU_EXPECT_OK(cluster_->StartWorker(worker));
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<int> stop_ = 0;
  int told_ = 0;

 private:
  Notification over_;
  std::thread rescue_;
};

TEST_F(TrainerCallbacksTest, FailuresWhileNobodyTrains) {
  TrainerOptions options = WithoutCheckpoints();
  bool killed = false;
  options.callbacks.on_step = [&](const TrainEvent&) {
    if (!std::exchange(killed, true)) KillWorkers();
  };
  options.callbacks.on_failure = [&](const MemberFailure& failure) { OnFailure(failure); };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 20, .steps_per_function = 1, .stop = &stop_}));
  EXPECT_FALSE(result.train.stopped);
  EXPECT_EQ(told_, 2) << "each once";
  EXPECT_EQ(Sum(), 20 * kSum);
}

TEST_F(TrainerCallbacksTest, FailuresWhileAnEvaluationGoesOn) {
  TrainerOptions options = WithoutCheckpoints();
  bool killed = false;
  options.callbacks.on_evaluation_progress = [&](uint64_t, uint64_t) {
    if (!std::exchange(killed, true)) KillWorkers();
  };
  options.callbacks.on_failure = [&](const MemberFailure& failure) { OnFailure(failure); };
  int told_by_then = 0;
  options.callbacks.on_evaluation = [&](const Evaluation&) { told_by_then = told_; };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.stop = &stop_, .eval_every = {.epochs = 1}}));
  EXPECT_FALSE(result.train.stopped);
  EXPECT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(told_by_then, 2);
  EXPECT_EQ(told_, 2);
}

// Training has come to its end, so nothing else looks for failures then.
TEST_F(TrainerCallbacksTest, FailuresWhileTheLastEvaluationBesideTrainingIsWaitedFor) {
  TrainerOptions options = Options();
  options.callbacks.on_epoch = [&](const EpochLoss&) { cluster_->KillWorker(0); };
  std::atomic<int> told = 0;
  options.callbacks.on_failure = [&](const MemberFailure& failure) {
    EXPECT_EQ(failure.role, pb::ROLE_WORKER);
    ++told;
  };
  options.evaluate_checkpoint = [&](const std::string&, const std::atomic<int>*,
                                    std::vector<std::string>*) -> absl::StatusOr<Evaluation> {
    EXPECT_TRUE(testing::Eventually([&] { return told > 0; }));
    Evaluation evaluation;
    evaluation.examples = kRecords;
    evaluation.metrics["mae"] = 1;
    return evaluation;
  };
  Trainer trainer(&c(), std::move(options));
  // It begins within the only epoch, and the epoch's end is where training ends.
  MU_ASSERT_OK_AND_ASSIGN(
      const FitResult result,
      trainer.Fit({.steps_per_function = 1, .eval_every = {.steps = kRecords / kBatch - 2}}));
  EXPECT_THAT(result.evaluations, SizeIs(1));
  EXPECT_EQ(told, 1);
}

TEST_F(TrainerCallbacksTest, TheFailureThatEndsTraining) {
  TrainerOptions options = WithoutCheckpoints();  // so a lost server cannot be replaced
  bool killed = false;
  options.callbacks.on_step = [&](const TrainEvent&) {
    if (!std::exchange(killed, true)) cluster_->KillServer(1);
  };
  std::vector<pb::Role> told;
  options.callbacks.on_failure = [&](const MemberFailure& failure) {
    told.push_back(failure.role);
  };
  Trainer trainer(&c(), std::move(options));
  EXPECT_THAT(trainer.Fit({.epochs = 20, .steps_per_function = 1}).status(),
              HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(told, ElementsAre(pb::ROLE_PSSERVER));
}

// Their results have come before, so no step says that work goes on.
TEST_F(TrainerCallbacksTest, StepsThatRunAgainAfterALostServer) {
  constexpr uint64_t kBefore = 5;
  TrainerOptions options = Options();
  bool killed = false;
  options.callbacks.on_step = [&](const TrainEvent& event) {
    if (event.steps < kBefore || std::exchange(killed, true)) return;
    KillWorkers();  // so all steps are still to be repeated when it is looked
    cluster_->KillServer(1);
    MU_EXPECT_OK(cluster_->StartServer(1));
  };
  std::vector<uint64_t> left, repeated;
  options.callbacks.on_repeating = [&](uint64_t steps) {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    if (left.empty()) {
      for (const int worker : {0, 1}) MU_EXPECT_OK(cluster_->StartWorker(worker));
    }
    left.push_back(steps);
  };
  options.callbacks.on_recovery = [&](const MemberFailure& failure) {
    EXPECT_GE(failure.recovered_seconds, 0);
    if (failure.role == pb::ROLE_PSSERVER) repeated.push_back(failure.steps_repeated);
  };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result,
                          trainer.Fit({.epochs = 20, .steps_per_function = 1, .stop = &stop_}));
  EXPECT_FALSE(result.train.stopped) << "nobody was told that steps run again";
  ASSERT_THAT(left, Not(IsEmpty()));
  EXPECT_GE(left.front(), kBefore);
  EXPECT_EQ(left.back(), 0u);
  EXPECT_THAT(repeated, ElementsAre(Ge(kBefore)));
  EXPECT_EQ(Sum(), 20 * kSum);
}

// On a full disk, say: here a file takes the folder's place.
TEST_F(TrainerCallbacksTest, CheckpointsThatFailAreAWarning) {
  TrainerOptions options = Options();
  const std::string folder = options.checkpoints->directory;
  std::atomic<uint64_t> requests = 0;
  options.checkpoints->requests = &requests;
  Trainer* training = nullptr;
  options.callbacks.on_step = [&](const TrainEvent&) {
    if (requests > 0) return;
    MU_ASSERT_OK(WriteFileAtomic(folder, "in the way"));
    for (int i = 0; i < 3; ++i) {
      const uint64_t asked = ++requests;
      testing::WaitWhile([&] { return training->checkpointer()->failed() < asked; });
    }
  };
  std::vector<std::string> warnings;
  options.callbacks.on_warning = [&](const std::string& warning) {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    warnings.push_back(warning);
  };
  Trainer trainer(&c(), std::move(options));
  training = &trainer;
  MU_ASSERT_OK(trainer.Fit({.steps_per_function = 1}).status());
  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("a checkpoint failed, training goes on: "),
                                HasSubstr("none was taken since the coordinator started"))));
  MU_ASSERT_OK(RemoveFile(folder));
  MU_ASSERT_OK(trainer.Save().status());
  EXPECT_THAT(warnings,
              ElementsAre(_, HasSubstr("a checkpoint has succeeded again, the first in ")));
}

TEST_F(TrainerCallbacksTest, EpochsAndAStopThatIsAskedFor) {
  TrainerOptions options = WithoutCheckpoints();
  std::vector<std::string> events;
  const auto event = [&](absl::string_view what, uint64_t epoch) {
    events.push_back(absl::StrCat(what, " ", epoch));
  };
  options.callbacks.on_epoch = [&](const EpochLoss& epoch) {
    EXPECT_EQ(epoch.samples, uint64_t{kRecords});
    EXPECT_NEAR(epoch.loss(), (kRecords - 1) / 2.0, 1e-3);
    event("epoch", epoch.epoch);
  };
  options.callbacks.on_evaluation = [&](const Evaluation& evaluation) {
    event("evaluation", evaluation.epoch);
  };
  std::vector<StopReason> stops;
  options.callbacks.on_stop = [&](StopReason reason) { stops.push_back(reason); };
  uint64_t stop_at = 0;
  options.callbacks.on_step = [&](const TrainEvent& step) {
    if (stop_at > 0 && step.steps >= stop_at) stop_ = 1;
  };
  Trainer trainer(&c(), std::move(options));
  FitOptions fit = {
      .epochs = 2, .steps_per_function = 1, .stop = &stop_, .eval_every = {.epochs = 1}};
  MU_ASSERT_OK(trainer.Fit(fit).status());
  EXPECT_THAT(events, ElementsAre("epoch 1", "evaluation 1", "epoch 2", "evaluation 2"));
  EXPECT_THAT(stops, IsEmpty()) << "it came to its end";
  events.clear();
  fit.epochs = 20;
  stop_at = 3 * kRecords / kBatch + 1;  // of the job: in the fourth epoch
  MU_ASSERT_OK_AND_ASSIGN(const FitResult stopped, trainer.Fit(fit));
  EXPECT_TRUE(stopped.train.stopped);
  EXPECT_THAT(stops, ElementsAre(StopReason::kAsked));
  // The end of the second epoch, where it goes on, was told. Whether the fourth has come to its end
  // is chance.
  ASSERT_THAT(events, SizeIs(::testing::Ge(2)));
  events.resize(2);
  EXPECT_THAT(events, ElementsAre("epoch 3", "evaluation 3"));
  EXPECT_LT(stopped.train.steps, 100u);
}

TEST_F(TrainerCallbacksTest, AnEpochIsToldByTheCallInWhichItEnds) {
  constexpr uint64_t kSteps = kRecords / kBatch;
  TrainerOptions options = WithoutCheckpoints();
  std::vector<std::string> events;
  options.callbacks.on_epoch = [&](const EpochLoss& epoch) {
    events.push_back(absl::StrCat("epoch ", epoch.epoch));
  };
  options.callbacks.on_evaluation = [&](const Evaluation&) { events.push_back("evaluation"); };
  Trainer trainer(&c(), std::move(options));
  // Both calls end within an epoch, or stand still there, while results of the one before come.
  FitOptions fit = {.epochs = 4, .steps_per_function = 1, .max_steps = kSteps + 1};
  MU_ASSERT_OK(trainer.Fit(fit).status());
  EXPECT_THAT(events, ElementsAre("epoch 1"));
  events.clear();
  fit.max_steps = 4 * kSteps;
  fit.eval_every.steps = 2 * kSteps + 1;
  MU_ASSERT_OK(trainer.Fit(fit).status());
  EXPECT_THAT(events, ElementsAre("epoch 2", "evaluation", "epoch 3", "epoch 4"));
}

// Checkpoints are due by them, too.
TEST_F(TrainerCallbacksTest, StepsAreThoseOfTheJobInTheNextFitAsWell) {
  TrainerOptions options = Options();
  options.checkpoints->every_steps = 5;
  TrainEvent last;
  options.callbacks.on_step = [&](const TrainEvent& event) { last = event; };
  Trainer trainer(&c(), std::move(options));
  for (const uint32_t epochs : {2u, 4u}) {
    const uint64_t taken = trainer.checkpointer()->taken();
    MU_ASSERT_OK(trainer.Fit({.epochs = epochs}).status());
    EXPECT_EQ(last.steps, epochs * uint64_t{kRecords / kBatch});
    EXPECT_EQ(last.total_steps, last.steps);
    testing::WaitWhile([&] { return trainer.checkpointer()->taken() == taken; });
    MU_ASSERT_OK(trainer.Save().status());  // none is due now
  }
  // The data begins again, and the steps with it.
  MU_ASSERT_OK(c().StartEpoch(data_, 0));
  const uint64_t taken = trainer.checkpointer()->taken();
  MU_ASSERT_OK(trainer.Fit({.epochs = 2}).status());
  testing::WaitWhile([&] { return trainer.checkpointer()->taken() == taken; });
}

// The next Fit goes on with what the first one has trained, not with what was restored before it.
TEST_F(TrainerCallbacksTest, AJobThatTheProgramHasRestoredIsTakenUpOnce) {
  {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 1}).status());
    MU_ASSERT_OK(trainer.Save().status());
  }
  ASSERT_NO_FATAL_FAILURE(Restart());
  TrainerOptions options = Options();
  TrainEvent last;
  options.callbacks.on_step = [&](const TrainEvent& event) { last = event; };
  Trainer trainer(&c(), std::move(options));
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
  FitOptions fit = {.epochs = 2, .eval_every = {.epochs = 1}, .restored = &restored};
  MU_ASSERT_OK(trainer.Fit(fit).status());
  EXPECT_EQ(last.steps, 20u);
  fit.epochs = 3;
  MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
  EXPECT_EQ(last.steps, 30u);
  EXPECT_EQ(last.total_steps, 30u);
  std::vector<uint64_t> evaluated;
  for (const Evaluation& evaluation : result.evaluations) evaluated.push_back(evaluation.steps);
  EXPECT_THAT(evaluated, ElementsAre(10, 20, 30)) << "each once";
  ASSERT_THAT(result.train.epochs, SizeIs(3));
  for (const EpochLoss& epoch : result.train.epochs)
    EXPECT_EQ(epoch.samples, uint64_t{kRecords}) << epoch.epoch;
  EXPECT_EQ(Sum(), 3 * kSum);
}

TEST_F(TrainerCallbacksTest, WhoeverHearsOfACheckpointTakesNoOtherThere) {
  TrainerOptions options = Options();
  std::vector<std::string> told;
  options.checkpoints->on_taken = [&](const std::string& directory) {
    told.push_back("taken " + directory);
  };
  Trainer* training = nullptr;
  options.callbacks.on_checkpoint = [&](const std::string& directory) {
    told.push_back("checkpoint " + directory);
    EXPECT_THAT(training->Save(), HasCode(absl::StatusCode::kFailedPrecondition));
  };
  Trainer trainer(&c(), std::move(options));
  training = &trainer;
  MU_ASSERT_OK(trainer.Fit({}).status());
  MU_ASSERT_OK_AND_ASSIGN(const std::string saved, trainer.Save());
  EXPECT_THAT(told, ElementsAre("taken " + saved, "checkpoint " + saved));
}

}  // namespace
}  // namespace mu
