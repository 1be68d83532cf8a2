// What hangs on a worker that is not lost runs elsewhere too.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
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

// Workers hang, wake up and are lost: every step's result is taken exactly once, everything
// finishes, and no slot is lost.
TEST(BackupRunHistories, TakeEveryStepOnce) {
  size_t backups = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix random(seed);
    FunctionQueue queue(1 + static_cast<int>(random.Below(3)), NoData, {.least_seconds = 3});
    struct Run {
      StartRun start;
      uint32_t next;
    };
    std::vector<Run> runs;
    std::map<FunctionId, uint32_t> taken, wanted;
    for (int i = 0; i < 30; ++i) {
      const uint32_t steps = static_cast<uint32_t>(1 + random.Below(5));
      wanted[queue.Schedule({.steps = steps, .updates = random.Below(2) == 0})] = steps;
    }
    double now = 0;
    for (int event = 0; event < 100000 && (queue.unfinished() > 0 || !runs.empty()); ++event) {
      const WorkerId worker(static_cast<uint32_t>(random.Below(3)));
      const uint64_t what = random.Below(40);
      if (what == 0) {
        queue.WorkerLost(worker);
      } else if (what < 4) {
        queue.WorkerReady(worker, 1);
      } else if (what < 12) {
        backups += queue.Tick(now += 1).size();
      } else if (!runs.empty()) {
        // Each worker runs what it was given in order; some hang most of the time.
        const size_t i = random.Below(runs.size());
        Run& run = runs[i];
        if (run.start.worker == WorkerId(seed % 3) && random.Below(10) != 0) continue;
        if (run.next < run.start.steps) {
          if (queue.StepDone(run.start.function, run.start.run, run.next))
            ++taken[run.start.function];
          ++run.next;
        } else {
          queue.RunEnded(run.start.function, run.start.run);
          runs.erase(runs.begin() + static_cast<long>(i));
        }
      }
      std::vector<FunctionId> completed;
      for (const StartRun& start : queue.Dispatch(&completed))
        runs.push_back({start, start.first_step});
    }
    ASSERT_EQ(queue.unfinished(), 0u) << "seed " << seed;
    ASSERT_EQ(taken, wanted) << "seed " << seed;
    for (uint32_t worker = 0; worker < 3; ++worker)
      ASSERT_EQ(queue.InFlight(WorkerId(worker)), 0u) << "seed " << seed;
  }
  EXPECT_GT(backups, 300u);
}

TEST(Transcripts, QueueWithAHungWorker) {
  std::string text = "\n";
  const auto t = [&](const std::string& event, const std::string& outcome) {
    absl::StrAppend(&text, event, ": ", outcome.empty() ? "-" : outcome, "\n");
  };
  FunctionQueue queue(2, NoData, {.least_seconds = 30});
  queue.ForgetPoints();
  std::map<FunctionId, std::vector<StartRun>> runs;
  const auto dispatch = [&] {
    std::vector<FunctionId> completed;
    std::vector<std::string> starts;
    for (const StartRun& run : queue.Dispatch(&completed)) {
      starts.push_back(absl::StrCat("function ", run.function.value(), " on ", run.worker.value(),
                                    " from step ", run.first_step));
      runs[run.function].push_back(run);
    }
    t("dispatch", absl::StrJoin(starts, ", "));
  };
  const auto tick = [&](int seconds) {
    t(absl::StrCat(seconds, "s"),
      absl::StrJoin(queue.Tick(seconds), ", ", [](std::string* out, const auto& backup) {
        absl::StrAppend(out, "function ", backup.function.value(), " hangs on ",
                        backup.hung.value(), " for ", backup.silent_seconds, "s");
      }));
  };
  const auto step = [&](uint64_t function, size_t run, uint32_t s) {
    t(absl::StrCat("result ", function, "/", s, " of run ", run),
      queue.StepDone(FunctionId(function), runs[FunctionId(function)][run].run, s)
          ? "delivered"
          : "not delivered");
  };
  const auto end = [&](uint64_t function, size_t run) {
    const auto ended = queue.RunEnded(FunctionId(function), runs[FunctionId(function)][run].run);
    t(absl::StrCat("end of ", function, " run ", run),
      absl::StrCat(ended == FunctionQueue::Ended::kCompleted ? "completed" : "ignored",
                   ", low water ", queue.low_water().value(), ", in flight ",
                   queue.InFlight(WorkerId(0)), " and ", queue.InFlight(WorkerId(1))));
  };
  for (uint32_t worker = 0; worker < 2; ++worker) queue.WorkerReady(WorkerId(worker), 1);
  for (int i = 0; i < 5; ++i) queue.Schedule({.steps = 2});
  tick(0);
  dispatch();
  tick(10);
  step(1, 0, 0);
  step(2, 0, 0);
  step(2, 0, 1);
  end(2, 0);
  tick(20);
  tick(30);
  dispatch();
  step(4, 0, 0);
  tick(40);
  tick(50);
  dispatch();
  step(4, 0, 1);
  end(4, 0);
  dispatch();
  step(5, 0, 0);
  step(5, 0, 1);
  end(5, 0);
  dispatch();
  step(1, 1, 1);
  end(1, 1);
  step(1, 0, 1);
  end(1, 0);
  step(3, 0, 0);
  step(3, 1, 0);
  step(3, 1, 1);
  end(3, 1);
  end(3, 0);
  EXPECT_EQ(text, R"(
0s: -
dispatch: function 1 on 0 from step 0, function 2 on 1 from step 0, function 3 on 0 from step 0, function 4 on 1 from step 0
10s: -
result 1/0 of run 0: delivered
result 2/0 of run 0: delivered
result 2/1 of run 0: delivered
end of 2 run 0: completed, low water 1, in flight 2 and 1
20s: -
30s: -
dispatch: function 5 on 1 from step 0
result 4/0 of run 0: delivered
40s: -
50s: function 1 hangs on 0 for 30s, function 3 hangs on 0 for 30s
dispatch: -
result 4/1 of run 0: delivered
end of 4 run 0: completed, low water 1, in flight 2 and 1
dispatch: function 1 on 1 from step 1
result 5/0 of run 0: delivered
result 5/1 of run 0: delivered
end of 5 run 0: completed, low water 1, in flight 2 and 1
dispatch: function 3 on 1 from step 0
result 1/1 of run 1: delivered
end of 1 run 1: completed, low water 3, in flight 2 and 1
result 1/1 of run 0: not delivered
end of 1 run 0: ignored, low water 3, in flight 1 and 1
result 3/0 of run 0: delivered
result 3/0 of run 1: not delivered
result 3/1 of run 1: delivered
end of 3 run 1: completed, low water 6, in flight 1 and 0
end of 3 run 0: ignored, low water 6, in flight 0 and 0
)");
}

}  // namespace
}  // namespace mu
