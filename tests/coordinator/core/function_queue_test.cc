#include "coordinator/core/function_queue.h"

#include <map>
#include <set>

#include "common/base/hash.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CheckpointNumber kOne{1}, kTwo{2};

std::vector<BatchRange> NoData(uint64_t, WorkerId, uint32_t) { return {}; }

std::vector<StartRun> Dispatch(FunctionQueue& queue) {
  std::vector<FunctionId> completed;
  auto starts = queue.Dispatch(&completed);
  EXPECT_THAT(completed, IsEmpty());
  return starts;
}

TEST(FunctionQueue, DispatchesInOrderToTheLeastLoadedWorker) {
  FunctionQueue queue(2, NoData);
  for (int i = 0; i < 5; ++i) queue.Schedule({.steps = 1});
  EXPECT_THAT(Dispatch(queue), IsEmpty());
  queue.WorkerReady(WorkerId(0), 1);
  queue.WorkerReady(WorkerId(1), 1);
  const auto starts = Dispatch(queue);
  ASSERT_EQ(starts.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(starts[i].function, FunctionId(i + 1));
    EXPECT_EQ(starts[i].worker, WorkerId(i % 2));
  }
  EXPECT_EQ(queue.queued(), 1u);
}

TEST(FunctionQueue, WaitsForAWorkerThatHasWhatTheFunctionNeeds) {
  FunctionQueue queue(2, NoData);
  queue.Schedule({.steps = 1, .needs_version = 5});
  queue.WorkerReady(WorkerId(0), 4);
  EXPECT_THAT(Dispatch(queue), IsEmpty());
  queue.WorkerReady(WorkerId(0), 5);
  EXPECT_EQ(Dispatch(queue).size(), 1u);
}

TEST(FunctionQueue, GoesToOthersFirstAfterItsWorkerCouldNotReachAServer) {
  FunctionQueue queue(1, NoData);
  const FunctionId id = queue.Schedule({.steps = 4});
  queue.WorkerReady(WorkerId(0), 1);
  StartRun run = Dispatch(queue)[0];
  EXPECT_EQ(queue.ServerUnreached(id, run.run), FunctionQueue::Ended::kRequeued);
  run = Dispatch(queue)[0];
  EXPECT_EQ(run.worker, WorkerId(0)) << "there is no other one";
  EXPECT_EQ(queue.ServerUnreached(id, run.run), FunctionQueue::Ended::kRequeued);
  queue.WorkerReady(WorkerId(1), 1);
  run = Dispatch(queue)[0];
  EXPECT_EQ(run.worker, WorkerId(1));
  const FunctionId second = queue.Schedule({.steps = 1});
  EXPECT_EQ(Dispatch(queue)[0].worker, WorkerId(0)) << "what holds for one function only";
  EXPECT_EQ(queue.ServerUnreached(id, run.run), FunctionQueue::Ended::kRequeued);
  EXPECT_EQ(Dispatch(queue)[0].worker, WorkerId(1)) << "none could: the fault is not theirs";
  EXPECT_EQ(queue.Find(second)->worker, WorkerId(0));
}

TEST(FunctionQueue, ResumesElsewhereAtTheFirstStepWithoutAResult) {
  FunctionQueue queue(1, NoData);
  const FunctionId id = queue.Schedule({.steps = 4});
  queue.WorkerReady(WorkerId(0), 1);
  const StartRun first = Dispatch(queue)[0];
  EXPECT_TRUE(queue.StepDone(id, first.run, 0));
  EXPECT_FALSE(queue.StepDone(id, first.run, 0)) << "a repeated result";
  EXPECT_FALSE(queue.StepDone(id, first.run, 2)) << "a result out of order";
  EXPECT_TRUE(queue.StepDone(id, first.run, 1));
  queue.WorkerLost(WorkerId(0));
  queue.WorkerReady(WorkerId(1), 1);
  const StartRun second = Dispatch(queue)[0];
  EXPECT_EQ(second.function, id);
  EXPECT_EQ(second.first_step, 2u);
  EXPECT_FALSE(queue.StepDone(id, first.run, 2)) << "of the lost worker, waking up late";
  EXPECT_EQ(queue.RunEnded(id, first.run), FunctionQueue::Ended::kIgnored);
  EXPECT_TRUE(queue.StepDone(id, second.run, 2));
  EXPECT_EQ(queue.low_water(), id);
  EXPECT_TRUE(queue.StepDone(id, second.run, 3));
  EXPECT_EQ(queue.RunEnded(id, second.run), FunctionQueue::Ended::kCompleted);
  EXPECT_EQ(queue.low_water(), queue.next_id());
}

TEST(FunctionQueue, KnowsAFunctionThatEndsWhoeverRunsIt) {
  FunctionQueue queue(2, NoData);
  const FunctionId deadly = queue.Schedule({.steps = 2});
  const FunctionId next = queue.Schedule({.steps = 1});
  for (uint32_t i = 0; i < 7; ++i) {
    queue.WorkerReady(WorkerId(i), 1);
    const auto starts = Dispatch(queue);
    ASSERT_EQ(starts.size(), 2u);
    // The second loss comes after a step, so it is the first of a new row.
    if (i == 1) {
      EXPECT_TRUE(queue.StepDone(deadly, starts[0].run, 0));
    }
    const auto found = queue.DeadlyOn(WorkerId(i), 3);
    EXPECT_EQ(found.has_value(), i >= 3) << i;
    if (found.has_value()) {
      EXPECT_EQ(*found, deadly) << "the one behind it was not begun";
    }
    queue.WorkerLost(WorkerId(i));
  }
  EXPECT_EQ(queue.Find(next)->lost, 0u);
  queue.WorkerReady(WorkerId(9), 1);
  EXPECT_EQ(queue.DeadlyOn(WorkerId(9), 1), std::nullopt) << "it runs nothing";
}

TEST(FunctionQueue, GivesToOthersWhatWasLostTwiceOnAWorker) {
  FunctionQueue queue(1, NoData);
  const FunctionId id = queue.Schedule({.steps = 1});
  for (int lives = 0; lives < 2; ++lives) {
    queue.WorkerReady(WorkerId(0), 1);
    EXPECT_EQ(Dispatch(queue)[0].function, id);
    EXPECT_EQ(queue.DeadlyOn(WorkerId(0), 3), std::nullopt);
    queue.WorkerLost(WorkerId(0));
  }
  queue.WorkerReady(WorkerId(0), 1);
  queue.WorkerReady(WorkerId(1), 1);
  EXPECT_EQ(Dispatch(queue)[0].worker, WorkerId(1));
  queue.StopRuns();
  EXPECT_EQ(queue.Find(id)->lost, 0u) << "servers are recovered, which it may have waited for";
}

TEST(FunctionQueue, AFunctionWithoutDataCompletesWithoutAWorker) {
  FunctionQueue queue(1, NoData);
  const FunctionId id = queue.Schedule({.steps = 4, .dataset = 1});
  queue.WorkerReady(WorkerId(0), 1);
  std::vector<FunctionId> completed;
  EXPECT_THAT(queue.Dispatch(&completed), IsEmpty());
  EXPECT_THAT(completed, ElementsAre(id));
  EXPECT_EQ(queue.unfinished(), 0u);
}

TEST(FunctionQueue, CancelAllForgetsRunsAndFreesWorkers) {
  FunctionQueue queue(1, NoData);
  const FunctionId a = queue.Schedule({.steps = 1});
  const FunctionId b = queue.Schedule({.steps = 1});
  queue.WorkerReady(WorkerId(0), 1);
  const StartRun run = Dispatch(queue)[0];
  EXPECT_THAT(queue.CancelAll(), ElementsAre(a, b));
  EXPECT_FALSE(queue.StepDone(a, run.run, 0));
  EXPECT_EQ(queue.RunEnded(a, run.run), FunctionQueue::Ended::kIgnored);
  queue.Schedule({.steps = 1});
  EXPECT_EQ(Dispatch(queue).size(), 1u);
}

TEST(FunctionQueue, WhatNoCheckpointCoversRunsAgainAfterARollBack) {
  FunctionQueue queue(1, NoData);
  queue.WorkerReady(WorkerId(0), 1);
  const auto run = [&](FunctionId id, uint32_t steps) {
    const StartRun start = Dispatch(queue)[0];
    EXPECT_EQ(start.function, id);
    for (uint32_t s = start.first_step; s < steps; ++s) queue.StepDone(id, start.run, s);
    return queue.RunEnded(id, start.run);
  };
  const FunctionId covered = queue.Schedule({.steps = 2, .updates = true});
  run(covered, 2);
  EXPECT_EQ(queue.low_water(), covered) << "no checkpoint yet: it may have to run again";
  const auto position = queue.CheckpointPosition();
  const FunctionId after = queue.Schedule({.steps = 3, .updates = true});
  const FunctionId reads = queue.Schedule({.steps = 1});
  run(after, 3);
  run(reads, 1);
  queue.CheckpointCommitted(kOne, position);
  queue.CheckpointCommitted(kTwo, position);
  EXPECT_EQ(queue.low_water(), after);
  const FunctionId open = queue.Schedule({.steps = 4, .updates = true});
  const StartRun start = Dispatch(queue)[0];
  EXPECT_TRUE(queue.StepDone(open, start.run, 0));

  const auto back = queue.RollBack(kTwo);
  EXPECT_EQ(back.functions, 2u);
  EXPECT_EQ(back.steps, 4u);
  EXPECT_FALSE(queue.StepDone(open, start.run, 1)) << "a run from before";
  EXPECT_EQ(queue.unfinished(), 2u) << "one that only reads is not repeated";
  const StartRun repeat = Dispatch(queue)[0];
  EXPECT_EQ(repeat.function, after);
  EXPECT_EQ(repeat.first_step, 0u);
  for (uint32_t s = 0; s < 3; ++s)
    EXPECT_FALSE(queue.StepDone(after, repeat.run, s)) << "delivered before";
  EXPECT_EQ(queue.RunEnded(after, repeat.run), FunctionQueue::Ended::kCompleted);
  const StartRun again = Dispatch(queue)[0];
  EXPECT_EQ(again.first_step, 0u);
  EXPECT_FALSE(queue.StepDone(open, again.run, 0));
  EXPECT_TRUE(queue.StepDone(open, again.run, 1)) << "the first new result";
}

// Servers take their cuts while functions run: what is bound after the position was taken may be in
// one cut and not in another, so neither a committed checkpoint nor the position that a new
// coordinator resumes from may lose it.
TEST(FunctionQueue, WhatIsBoundWhileServersTakeTheirCutsRunsAgain) {
  uint32_t batch = 0;
  FunctionQueue queue(1, [&](uint64_t, WorkerId, uint32_t steps) {
    BatchRange range;
    range.first_batch = batch;
    range.batches = steps;
    batch += steps;
    return std::vector<BatchRange>{range};
  });
  queue.WorkerReady(WorkerId(0), 1);
  const auto finish = [&](FunctionId id) {
    const StartRun start = Dispatch(queue)[0];
    EXPECT_EQ(start.function, id);
    for (uint32_t s = start.first_step; s < start.steps; ++s) queue.StepDone(id, start.run, s);
    EXPECT_EQ(queue.RunEnded(id, start.run), FunctionQueue::Ended::kCompleted);
  };
  const FunctionWork work{.steps = 2, .dataset = 1, .updates = true};
  const FunctionId before = queue.Schedule(work);
  finish(before);
  const FunctionId waits = queue.Schedule(work);  // not bound when the checkpoint begins
  const auto begun = queue.CheckpointPosition();
  finish(waits);
  const FunctionId later = queue.Schedule(work);
  Dispatch(queue);
  const FunctionId unbound = queue.Schedule(work);  // when the cuts have been taken
  const auto position = queue.AfterCuts(begun);
  queue.CheckpointCommitted(kOne, begun);
  queue.CheckpointCommitted(kTwo, begun);
  EXPECT_EQ(queue.kept(), 1u) << "a cut may have been taken before it ran";
  EXPECT_EQ(queue.low_water(), waits);

  ASSERT_EQ(position.unfinished.size(), 3u);
  EXPECT_FALSE(position.unfinished.at(unbound).bound);
  EXPECT_EQ(position.unfinished.at(waits).batches[0].first_batch, 2u);
  EXPECT_EQ(position.unfinished.at(waits).next_step, 0u) << "results of after the cut";
  EXPECT_EQ(position.unfinished.at(later).batches[0].first_batch, 4u);
  FunctionQueue next(1, NoData);
  next.Resume(kTwo, position);
  next.WorkerReady(WorkerId(0), 1);
  EXPECT_EQ(next.next_id(), queue.next_id()) << "ids that a cut may know are not given again";
  EXPECT_EQ(Dispatch(next)[0].function, waits);
}

TEST(FunctionQueue, CountsWhatTheNewestCheckpointLacks) {
  FunctionQueue queue(4, NoData);
  queue.WorkerReady(WorkerId(0), 1);
  const FunctionWork work{.steps = 1, .updates = true};
  const auto begin = [&] {
    queue.Schedule(work);
    return Dispatch(queue)[0];
  };
  const auto finish = [&](const StartRun& start) {
    queue.StepDone(start.function, start.run, 0);
    ASSERT_EQ(queue.RunEnded(start.function, start.run), FunctionQueue::Ended::kCompleted);
  };
  finish(begin());
  finish(begin());
  EXPECT_EQ(queue.uncovered(), 2u);
  const StartRun open = begin();
  const auto begun = queue.CheckpointPosition();
  finish(open);
  finish(begin());
  EXPECT_EQ(queue.uncovered(), 4u) << "not before it is complete";
  queue.CheckpointCommitted(kOne, begun);
  EXPECT_EQ(queue.uncovered(), 2u) << "what ran while it was taken";
  EXPECT_EQ(queue.kept(), 4u) << "an older point lacks them";
  finish(begin());
  EXPECT_EQ(queue.uncovered(), 3u);
  EXPECT_EQ(queue.RollBack(kOne).functions, 3u);
  EXPECT_EQ(queue.uncovered(), 0u);
  std::vector<StartRun> repeats = Dispatch(queue);
  ASSERT_EQ(repeats.size(), 1u) << "each was scheduled after the one before";
  finish(repeats[0]);
  EXPECT_EQ(queue.uncovered(), 1u);
  queue.CancelAll();
  EXPECT_EQ(queue.uncovered(), 3u) << "repeats that were cancelled are kept again";
  queue.ForgetPoints();
  EXPECT_EQ(queue.uncovered(), queue.kept());
  queue.ForgetKept();
  EXPECT_EQ(queue.uncovered(), 0u);
}

// Workers come and go, results are lost with them: every step's result is taken exactly once and
// everything finishes.
TEST(FunctionQueue, RandomHistoriesTakeEveryStepOnce) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix random(seed);
    std::map<uint64_t, uint32_t> bound;
    FunctionQueue queue(1 + static_cast<int>(random.Below(3)),
                        [&](uint64_t, WorkerId, uint32_t steps) {
                          BatchRange range;
                          range.batches = steps;
                          return std::vector<BatchRange>{range};
                        });
    struct Run {
      StartRun start;
      uint32_t next;
    };
    std::vector<Run> runs;
    std::map<FunctionId, uint32_t> taken, wanted, unbound;
    for (int i = 0; i < 30; ++i) {
      const uint32_t steps = static_cast<uint32_t>(1 + random.Below(5));
      const uint64_t dataset = random.Below(2);
      const FunctionId id =
          queue.Schedule({.fingerprint = Fingerprint(random.Below(12)),  // more than have a pool
                          .steps = steps,
                          .dataset = dataset});
      wanted[id] = steps;
      if (dataset > 0) unbound[id] = steps;
    }
    for (int event = 0; event < 100000 && queue.unfinished() > 0; ++event) {
      const WorkerId worker(static_cast<uint32_t>(random.Below(3)));
      const uint64_t what = random.Below(20);
      if (what == 0) {
        queue.WorkerLost(worker);  // its runs may still report: they must be ignored
      } else if (what < 4) {
        queue.WorkerReady(worker, 1);
      } else if (!runs.empty()) {
        const size_t i = random.Below(runs.size());
        Run& run = runs[i];
        if (run.next < run.start.steps && random.Below(8) != 0) {
          if (queue.StepDone(run.start.function, run.start.run, run.next))
            ++taken[run.start.function];
          ++run.next;
        } else {
          queue.RunEnded(run.start.function, run.start.run);
          runs.erase(runs.begin() + static_cast<long>(i));
        }
      }
      std::vector<FunctionId>
          completed;  // those whose last result came before their worker was lost
      for (const StartRun& start : queue.Dispatch(&completed)) {
        runs.push_back({start, start.first_step});
        unbound.erase(start.function);
      }
      // What the queue counts, it counts as it goes.
      uint64_t unbound_steps = 0;
      for (const auto& [id, steps] : unbound) unbound_steps += steps;
      ASSERT_EQ(queue.UnboundSteps(1), unbound_steps);
      size_t running = 0;
      for (uint32_t w = 0; w < 3; ++w) {
        for (const FunctionId id : queue.RunningOn(WorkerId(w))) {
          ++running;
          ASSERT_EQ(queue.Find(id)->worker, WorkerId(w));
        }
        ASSERT_EQ(queue.RunningOn(WorkerId(w)).size(), queue.InFlight(WorkerId(w)));
      }
      ASSERT_EQ(queue.running(), running);
      ASSERT_EQ(queue.IsAwaited(), queue.unfinished() > 0) << "nothing is repeated";
    }
    ASSERT_EQ(queue.unfinished(), 0u) << "seed " << seed;
    ASSERT_EQ(taken, wanted) << "seed " << seed;
  }
}

TEST(FunctionQueue, NothingOvertakesAFunctionThatIsHeld) {
  FunctionQueue queue(10, NoData);
  const FunctionId begun = queue.Schedule({.steps = 1, .updates = true});
  queue.WorkerReady(WorkerId(0), 1);
  const StartRun run = Dispatch(queue)[0];
  const FunctionId reads = queue.Schedule({.steps = 1});
  const FunctionId held = queue.Schedule({.steps = 1, .updates = true});
  queue.Schedule({.steps = 1});
  EXPECT_EQ(queue.RunEnded(begun, run.run), FunctionQueue::Ended::kRequeued);
  std::vector<FunctionId> completed;
  const auto starts =
      queue.Dispatch(&completed, [](FunctionId, bool has_begun) { return !has_begun; });
  ASSERT_EQ(starts.size(), 2u);
  EXPECT_EQ(starts[0].function, begun);
  EXPECT_EQ(starts[1].function, reads);
  EXPECT_THAT(queue.Dispatch(&completed, [&](FunctionId id, bool) { return id == held; }),
              IsEmpty());
  EXPECT_EQ(Dispatch(queue).size(), 2u);
}

TEST(FunctionQueue, IsAwaitedUntilEachFunctionOfTrainingHasFinishedOnce) {
  FunctionQueue queue(4, NoData);
  queue.WorkerReady(WorkerId(0), 1);
  const auto finish = [&](const StartRun& run) {
    queue.StepDone(run.function, run.run, 0);
    EXPECT_EQ(queue.RunEnded(run.function, run.run), FunctionQueue::Ended::kCompleted);
  };
  const FunctionWork work = {.steps = 1, .updates = true};
  EXPECT_FALSE(queue.IsAwaited());
  queue.Schedule(work);
  queue.Schedule(work);
  const std::vector<StartRun> first = Dispatch(queue);
  ASSERT_EQ(first.size(), 2u);
  finish(first[0]);
  EXPECT_TRUE(queue.IsAwaited());
  finish(first[1]);
  EXPECT_FALSE(queue.IsAwaited());

  queue.RollBack(kInitialValues);
  EXPECT_EQ(queue.unfinished(), 2u);
  EXPECT_FALSE(queue.IsAwaited()) << "both are repeats";
  queue.Schedule(work);
  const std::vector<StartRun> second = Dispatch(queue);
  ASSERT_EQ(second.size(), 2u);
  finish(second[0]);
  EXPECT_TRUE(queue.Remove(second[1].function, second[1].run));
  EXPECT_TRUE(queue.IsAwaited()) << "the repeats were nobody's";
  const std::vector<StartRun> third = Dispatch(queue);
  ASSERT_EQ(third.size(), 1u) << "after them";
  EXPECT_TRUE(queue.Remove(third[0].function, third[0].run)) << "it has failed";
  EXPECT_FALSE(queue.IsAwaited());

  queue.Schedule(work);
  EXPECT_TRUE(queue.IsAwaited());
  queue.CancelAll();
  EXPECT_FALSE(queue.IsAwaited());
  queue.Schedule({.steps = 1, .group = GroupId(1)});
  EXPECT_FALSE(queue.IsAwaited()) << "groups are beside training";
}

TEST(FunctionQueue, WhatADecidedRoundOrACheckpointLeavesIsAwaited) {
  FunctionQueue queue(1, NoData);
  queue.SetRounds({.replicas = 1});
  queue.WorkerReady(WorkerId(0), 1);
  const FunctionId id = queue.Schedule({.steps = 1, .trains = true, .updates = true});
  const std::vector<StartRun> runs = Dispatch(queue);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_TRUE(queue.Contribute(id, runs[0].run, 0));
  queue.CloseRound({id});
  EXPECT_THAT(queue.CancelAll(), IsEmpty());
  EXPECT_TRUE(queue.IsAwaited()) << "its round is to be committed";
  queue.CommitStep(id, 1);
  EXPECT_TRUE(queue.EndStep(id));
  EXPECT_FALSE(queue.IsAwaited());

  FunctionQueue resumed(1, NoData);
  FunctionQueue::Position position;
  position.next_id = FunctionId(9);
  FunctionQueue::Function& function = position.unfinished[FunctionId(7)];
  function.steps = 1;
  function.finished = true;  // it was a repeat when the checkpoint was taken
  resumed.Resume(kOne, position);
  EXPECT_TRUE(resumed.IsAwaited());
  EXPECT_THAT(resumed.CancelAll(), ElementsAre(FunctionId(7)));
  EXPECT_FALSE(resumed.IsAwaited());
}

}  // namespace
}  // namespace mu
