// Backup runs over whole histories: of chance, and one that is written out.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/hash.h"
#include "coordinator/core/function_queue.h"
#include "gtest/gtest.h"

namespace mu {
namespace {

std::vector<BatchRange> NoData(uint64_t, WorkerId, uint32_t) { return {}; }

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
