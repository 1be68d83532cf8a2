// What hangs on a worker that is not lost runs elsewhere too.
#include <vector>

#include "coordinator/core/function_queue.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr WorkerId kHung(0), kOther(1);
constexpr double kTick = 0.25;

std::vector<BatchRange> NoData(uint64_t, WorkerId, uint32_t) { return {}; }

class BackupRuns : public ::testing::Test {
 protected:
  BackupRuns() {
    for (const WorkerId worker : {kHung, kOther}) queue_.WorkerReady(worker, 1);
    queue_.Tick(now_);
  }
  FunctionId Schedule(uint32_t steps = 1) {
    return queue_.Schedule({.fingerprint = kStep, .steps = steps, .updates = true});
  }
  std::vector<StartRun> Dispatch() {
    std::vector<FunctionId> completed;
    return queue_.Dispatch(&completed);
  }
  void Finish(const StartRun& run) {
    for (uint32_t step = run.first_step; step < run.steps; ++step)
      queue_.StepDone(run.function, run.run, step);
    queue_.RunEnded(run.function, run.run);
  }
  // Functions that are given up within `seconds`, in which the other worker has a result now and
  // then.
  std::vector<FunctionId> Wait(double seconds, bool others_go_on = true) {
    std::vector<FunctionId> backups;
    for (const double end = now_ + seconds; now_ < end;) {
      now_ += kTick;
      for (const auto& backup : queue_.Tick(now_)) {
        EXPECT_GE(backup.silent_seconds, rule_.least_seconds);
        backups.push_back(backup.function);
      }
      if (others_go_on) Work();
    }
    return backups;
  }
  // A step of a long function on the other worker.
  void Work() {
    if (busy_.has_value()) queue_.StepDone(busy_->function, busy_->run, busy_->first_step++);
  }

  static constexpr Fingerprint kStep{7};
  const BackupRule rule_ = {.least_seconds = 30, .times_median = 10};
  FunctionQueue queue_{2, NoData, rule_};
  double now_ = 1000;
  std::optional<StartRun> busy_;
};

TEST_F(BackupRuns, AFunctionWithoutAResultRunsElsewhereFromItsFirstStepWithoutOne) {
  const FunctionId id = Schedule(5);
  const StartRun hung = Dispatch()[0];
  ASSERT_EQ(hung.worker, kHung);
  queue_.StepDone(id, hung.run, 0);
  queue_.StepDone(id, hung.run, 1);
  EXPECT_THAT(Wait(30), IsEmpty());
  EXPECT_THAT(Wait(2 * kTick), ElementsAre(id));
  EXPECT_TRUE(queue_.IsSuperseded(hung.run));
  const auto runs = Dispatch();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].function, id);
  EXPECT_EQ(runs[0].worker, kOther);
  EXPECT_EQ(runs[0].first_step, 2u);
  EXPECT_THAT(Wait(1000), IsEmpty()) << "there is no third worker";
  Finish(runs[0]);
  EXPECT_EQ(queue_.unfinished(), 0u);
}

TEST_F(BackupRuns, WhatWaitsBehindItGoesElsewhereInItsOldOrder) {
  for (int i = 0; i < 4; ++i) Schedule();
  Schedule(1000);
  const auto runs = Dispatch();  // 1 and 3 hang
  ASSERT_EQ(runs.size(), 4u);
  Finish(runs[1]);
  busy_ = Dispatch()[0];
  EXPECT_EQ(busy_->function, FunctionId(5));
  Finish(runs[3]);
  EXPECT_THAT(Wait(31), ElementsAre(FunctionId(1), FunctionId(3)));
  const auto again = Dispatch();
  ASSERT_EQ(again.size(), 1u) << "as many as there is room for";
  EXPECT_EQ(again[0].function, FunctionId(1));
  Finish(again[0]);
  EXPECT_EQ(Dispatch()[0].function, FunctionId(3));
}

// Servers refuse it while the round that it was for is being committed.
TEST_F(BackupRuns, AHungRunThatComesTooLateForItsRoundCounts) {
  queue_.SetRounds({.replicas = 1, .backups = 1});
  const FunctionWork work = {.fingerprint = kStep, .steps = 1, .trains = true, .updates = true};
  const FunctionId late = queue_.Schedule(work), other = queue_.Schedule(work);
  const auto runs = Dispatch();
  ASSERT_EQ(runs.size(), 2u);
  ASSERT_EQ(runs[0].worker, kHung);
  EXPECT_THAT(Wait(31, /*others_go_on=*/false), IsEmpty()) << "all are silent";
  ASSERT_TRUE(queue_.Contribute(other, runs[1].run, 0));
  EXPECT_THAT(Wait(2 * kTick), ElementsAre(late));
  queue_.CloseRound({other});
  EXPECT_EQ(queue_.CameTooLate(late, runs[0].run), FunctionQueue::Ended::kIgnored);
  EXPECT_TRUE(queue_.CommitStep(other, 1));
  EXPECT_TRUE(queue_.EndStep(other));
  EXPECT_EQ(queue_.NextRound(), 1u);
  EXPECT_EQ(Dispatch().at(0).worker, kOther) << "it was too late on the one that hung";
}

TEST_F(BackupRuns, ARoundDoesNotWaitForTheHungRunOfAStepThatItHas) {
  queue_.SetRounds({.replicas = 1, .backups = 1});
  const FunctionId id =
      queue_.Schedule({.fingerprint = kStep, .steps = 2, .trains = true, .updates = true});
  for (int late = 0; late < 2; ++late) {
    const StartRun run = Dispatch().at(0);
    EXPECT_EQ(queue_.CameTooLate(id, run.run), FunctionQueue::Ended::kRequeued);
  }
  EXPECT_EQ(queue_.RoundsMissedIfDue(id), 2u);
  const StartRun hung = Dispatch().at(0);
  EXPECT_THAT(Wait(31), ElementsAre(id));
  const StartRun again = Dispatch().at(0);
  EXPECT_TRUE(queue_.WaitsForDue(/*about_to_dispatch=*/false));
  ASSERT_TRUE(queue_.Contribute(id, again.run, 0));
  EXPECT_TRUE(queue_.IsSuperseded(hung.run)) << "it may never end";
  EXPECT_FALSE(queue_.WaitsForDue(/*about_to_dispatch=*/false));
  queue_.CloseRound({id});
  EXPECT_TRUE(queue_.CommitStep(id, 1));
  EXPECT_FALSE(queue_.EndStep(id));
  EXPECT_EQ(queue_.NextRound(), 2u)
      << "the two of before; the step is in, and its next is not late";
}

TEST_F(BackupRuns, TheLowWaterMarkDoesNotWaitForTheHungRun) {
  queue_.ForgetPoints();
  for (int i = 0; i < 4; ++i) Schedule();
  const auto runs = Dispatch();
  Finish(runs[1]);
  Finish(runs[3]);
  queue_.ForgetKept();
  EXPECT_EQ(queue_.low_water(), FunctionId(1));
  Wait(31);
  for (const StartRun& run : Dispatch()) Finish(run);
  queue_.ForgetKept();
  EXPECT_EQ(queue_.low_water(), FunctionId(5));
  EXPECT_EQ(queue_.InFlight(kHung), 2u) << "it still has its runs";
}

TEST_F(BackupRuns, AHungWorkerGetsNothingMoreUntilItsRunsHaveEnded) {
  for (int i = 0; i < 2; ++i) Schedule();
  const auto hung = Dispatch();
  Finish(hung[1]);
  Wait(31);
  for (int i = 0; i < 3; ++i) Schedule();
  for (int round = 0; round < 4; ++round) {
    for (const StartRun& run : Dispatch()) {
      EXPECT_EQ(run.worker, kOther);
      Finish(run);
    }
  }
  EXPECT_EQ(queue_.unfinished(), 0u);
  EXPECT_FALSE(queue_.StepDone(hung[0].function, hung[0].run, 0)) << "it was delivered";
  EXPECT_EQ(queue_.RunEnded(hung[0].function, hung[0].run), FunctionQueue::Ended::kIgnored);
  EXPECT_EQ(queue_.InFlight(kHung), 0u);
  Schedule();
  EXPECT_EQ(Dispatch()[0].worker, kHung);
}

TEST_F(BackupRuns, TheRunWithTheNextResultIsTheOneThatCounts) {
  const FunctionId id = Schedule(3);
  const StartRun slow = Dispatch()[0];
  Wait(31);
  const StartRun backup = Dispatch()[0];
  bool current = false;
  EXPECT_TRUE(queue_.StepDone(id, slow.run, 0, 1, &current)) << "it was only slow";
  EXPECT_TRUE(current);
  EXPECT_TRUE(queue_.IsSuperseded(backup.run));
  EXPECT_FALSE(queue_.StepDone(id, backup.run, 0, 1, &current));
  EXPECT_FALSE(current);
  EXPECT_TRUE(queue_.StepDone(id, backup.run, 1));
  EXPECT_FALSE(queue_.StepDone(id, slow.run, 1));
  EXPECT_TRUE(queue_.StepDone(id, slow.run, 2));
  EXPECT_EQ(queue_.RunEnded(id, slow.run), FunctionQueue::Ended::kCompleted);
  EXPECT_EQ(queue_.InFlight(kOther), 1u);
  EXPECT_EQ(queue_.RunEnded(id, backup.run), FunctionQueue::Ended::kIgnored);
  EXPECT_EQ(queue_.InFlight(kOther), 0u);
  EXPECT_EQ(queue_.InFlight(kHung), 0u);
}

TEST_F(BackupRuns, AResultOfTheSlowRunTakesTheFunctionOutOfTheQueue) {
  const FunctionId id = Schedule(2);
  const StartRun slow = Dispatch()[0];
  Wait(31);
  EXPECT_EQ(queue_.queued(), 1u);
  EXPECT_TRUE(queue_.StepDone(id, slow.run, 0));
  EXPECT_EQ(queue_.queued(), 0u);
  EXPECT_THAT(Dispatch(), IsEmpty());
  EXPECT_TRUE(queue_.StepDone(id, slow.run, 1));
  EXPECT_EQ(queue_.RunEnded(id, slow.run), FunctionQueue::Ended::kCompleted);
}

TEST_F(BackupRuns, StepsThatTakeLongAreGivenTenTimesTheirMedian) {
  for (const double seconds : {1.0, 20.0, 20.0, 20.0, 200.0}) {
    const FunctionId id = Schedule();
    const StartRun run = Dispatch()[0];
    queue_.StepsTook(run.worker, id, seconds);
    Finish(run);
  }
  const FunctionId id = Schedule();
  Dispatch();
  EXPECT_THAT(Wait(199), IsEmpty());
  EXPECT_THAT(Wait(2), ElementsAre(id));
}

// The one that hangs was the fastest: nothing waits for it.
TEST_F(BackupRuns, ASlowWorkerDoesWhatAFastOneThatHangsWouldHaveDone) {
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 2; ++k) Schedule();
    for (const StartRun& run : Dispatch()) {
      queue_.StepsTook(run.worker, run.function, run.worker == kHung ? 0.01 : 0.1);
      Finish(run);
    }
  }
  for (int k = 0; k < 3; ++k) Schedule();
  for (const StartRun& run : Dispatch()) EXPECT_EQ(run.worker, kHung);
  EXPECT_EQ(queue_.queued(), 1u);
  EXPECT_THAT(Wait(2), IsEmpty());
  const auto runs = Dispatch();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].worker, kOther);
}

TEST_F(BackupRuns, NoneWhereAllAreSilentAlike) {
  Schedule(100);
  Schedule(100);
  ASSERT_EQ(Dispatch().size(), 2u);
  EXPECT_THAT(Wait(1000, false), IsEmpty()) << "they wait for a server, perhaps";
}

TEST_F(BackupRuns, TheCoordinatorsOwnStandstillIsNobodysSilence) {
  Schedule(100);
  Dispatch();
  Wait(10);
  now_ += 3600;
  EXPECT_THAT(queue_.Tick(now_), IsEmpty());
}

TEST_F(BackupRuns, AFunctionThatHangsOnThreeWorkersStaysThere) {
  for (uint32_t worker = 2; worker < 6; ++worker) queue_.WorkerReady(WorkerId(worker), 1);
  const FunctionId id = Schedule();
  for (int i = 0; i < 2; ++i) {
    Dispatch();
    EXPECT_THAT(Wait(31), ElementsAre(id));
  }
  Dispatch();
  EXPECT_THAT(Wait(1000), IsEmpty());
}

TEST_F(BackupRuns, ALostWorkersRunsAreForgotten) {
  const FunctionId id = Schedule();
  const StartRun hung = Dispatch()[0];
  Wait(31);
  queue_.WorkerLost(kHung);
  EXPECT_FALSE(queue_.IsSuperseded(hung.run));
  EXPECT_FALSE(queue_.StepDone(id, hung.run, 0));
  Finish(Dispatch()[0]);
  EXPECT_EQ(queue_.unfinished(), 0u);
  queue_.WorkerReady(kHung, 1);
  Schedule();
  EXPECT_EQ(Dispatch()[0].worker, kHung) << "it has come back";
}

TEST_F(BackupRuns, NoResultOfBeforeARollBackCounts) {
  const FunctionId id = Schedule();
  const StartRun hung = Dispatch()[0];
  Wait(31);
  queue_.RollBack(kInitialValues);
  EXPECT_FALSE(queue_.StepDone(id, hung.run, 0));
  EXPECT_EQ(queue_.RunEnded(id, hung.run), FunctionQueue::Ended::kIgnored);
  EXPECT_EQ(queue_.unfinished(), 1u);
}

}  // namespace
}  // namespace mu
