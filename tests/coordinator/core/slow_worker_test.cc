// The queue's dealings with workers of different speed.
#include <vector>

#include "coordinator/core/function_queue.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::IsEmpty;

constexpr WorkerId kFast(0), kSlow(1);

class SlowWorkerTest : public ::testing::Test {
 protected:
  SlowWorkerTest() {
    queue_.WorkerReady(kFast, 1);
    queue_.WorkerReady(kSlow, 1);
  }
  void Schedule(int functions) {
    for (int i = 0; i < functions; ++i)
      queue_.Schedule({.fingerprint = Fingerprint(5), .steps = 1});
  }
  std::vector<StartRun> Dispatch() {
    std::vector<FunctionId> completed;
    auto starts = queue_.Dispatch(&completed);
    for (const StartRun& start : starts) ++given_[start.worker];
    return starts;
  }
  void Finish(const StartRun& start, double seconds) {
    queue_.StepsTook(start.worker, start.function, seconds);
    queue_.StepDone(start.function, start.run, 0);
    queue_.RunEnded(start.function, start.run);
  }
  // Runs functions until each worker's pace is known: the slow one takes ten times as long.
  void LearnPaces() {
    for (int round = 0; round < 3; ++round) {
      Schedule(2);
      for (const StartRun& start : Dispatch()) Finish(start, start.worker == kSlow ? 10 : 1);
    }
    given_.clear();
  }

  FunctionQueue queue_{2, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); }};
  std::map<WorkerId, int> given_;
};

TEST_F(SlowWorkerTest, IsNotSlowBeforeThatIsKnown) {
  Schedule(4);
  EXPECT_EQ(Dispatch().size(), 4u);
  EXPECT_EQ(given_[kSlow], 2);
}

TEST_F(SlowWorkerTest, TheLastFunctionsAreLeftToTheOthers) {
  LearnPaces();
  Schedule(3);
  const auto starts = Dispatch();
  ASSERT_EQ(starts.size(), 2u)
      << "the third waits for the fast worker, which has it done before the slow one would";
  EXPECT_EQ(given_[kSlow], 0);
  Finish(starts[0], 1);
  EXPECT_EQ(Dispatch()[0].worker, kFast);
}

TEST_F(SlowWorkerTest, GetsItsShareOfALongQueueAndNoSecondInFlight) {
  LearnPaces();
  Schedule(14);
  EXPECT_EQ(Dispatch().size(), 3u);
  EXPECT_EQ(given_[kFast], 2);
  EXPECT_EQ(given_[kSlow], 1)
      << "the others need longer for all than it for one, but not than it for two";
}

TEST_F(SlowWorkerTest, TakesOverWhenTheOthersAreLost) {
  LearnPaces();
  Schedule(2);
  EXPECT_EQ(Dispatch().size(), 2u);
  queue_.WorkerLost(kFast);
  for (const StartRun& start : Dispatch()) EXPECT_EQ(start.worker, kSlow);
  EXPECT_EQ(queue_.InFlight(kSlow), 2u);
}

// Each of several slow workers could leave it to the others, were the fast one, which cannot run
// it, the measure.
TEST_F(SlowWorkerTest, TheyRunWhatTheFastOneCannot) {
  for (uint32_t slow = 2; slow < 5; ++slow) queue_.WorkerReady(WorkerId(slow), 1);
  Schedule(5);
  for (const StartRun& start : Dispatch()) {
    for (int i = 0; i < 3; ++i)
      queue_.StepsTook(start.worker, start.function, start.worker == kFast ? 0.001 : 10);
    queue_.StepDone(start.function, start.run, 0);
    queue_.RunEnded(start.function, start.run);
  }
  ASSERT_EQ(given_.size(), 5u) << "all paces are known";
  Schedule(1);
  const StartRun tried = Dispatch().at(0);
  ASSERT_EQ(tried.worker, kFast);
  EXPECT_EQ(queue_.ServerUnreached(tried.function, tried.run), FunctionQueue::Ended::kRequeued);
  const auto again = Dispatch();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_NE(again[0].worker, kFast);
}

// The slow worker has nothing to do while the other one does so many functions in this time.
TEST_F(SlowWorkerTest, IsTriedAgainAfterLongIdlenessHoweverManyFunctionsOthersGet) {
  LearnPaces();
  double now = 0;
  queue_.Tick(now);
  const auto fast_works = [&](double seconds, int functions) {
    for (const double until = now + seconds; now < until && given_[kSlow] == 0;) {
      for (int i = 0; i < functions && given_[kSlow] == 0; ++i) {
        Schedule(3);
        auto starts = Dispatch();
        for (size_t k = 0; k < starts.size(); ++k) {
          Finish(starts[k], 1);
          for (const StartRun& start : Dispatch()) starts.push_back(start);
        }
      }
      queue_.Tick(now += 0.25);
    }
  };
  fast_works(20, 200);
  EXPECT_EQ(given_[kSlow], 0) << "its own steps take 10 seconds";
  fast_works(90, 1);
  EXPECT_EQ(given_[kSlow], 1);
  EXPECT_GT(now, 99);
}

TEST_F(SlowWorkerTest, IsNotForgivenWhileNobodyHasWork) {
  LearnPaces();
  for (double now = 0; now < 1000; now += 10) queue_.Tick(now);
  Schedule(2);
  for (const StartRun& start : Dispatch()) EXPECT_EQ(start.worker, kFast);
}

TEST_F(SlowWorkerTest, OneThatDrainsGetsNothing) {
  queue_.WorkerDrains(kFast);
  Schedule(3);
  EXPECT_EQ(Dispatch().size(), 2u);
  EXPECT_EQ(given_[kFast], 0);
  queue_.WorkerDrains(kSlow);
  EXPECT_THAT(Dispatch(), IsEmpty());
}

// A simulated epoch in time: it ends when the fast workers and the slow one together can, within
// one function of theirs.
TEST(SlowWorkerEpoch, EndsAlmostAsEarlyAsItCould) {
  constexpr int kFunctions = 200;
  FunctionQueue queue(2, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); });
  const std::vector<double> seconds = {1, 1, 1, 10};
  for (uint32_t w = 0; w < seconds.size(); ++w) queue.WorkerReady(WorkerId(w), 1);
  for (int i = 0; i < kFunctions; ++i) queue.Schedule({.fingerprint = Fingerprint(5), .steps = 1});
  std::vector<std::vector<StartRun>> waiting(seconds.size());
  std::vector<double> busy_until(seconds.size(), 0);
  double now = 0;
  while (true) {
    std::vector<FunctionId> completed;
    for (const StartRun& start : queue.Dispatch(&completed)) {
      auto& runs = waiting[start.worker.value()];
      if (runs.empty()) busy_until[start.worker.value()] = now + seconds[start.worker.value()];
      runs.push_back(start);
    }
    if (queue.unfinished() == 0) break;
    size_t next = seconds.size();
    for (size_t w = 0; w < seconds.size(); ++w) {
      if (!waiting[w].empty() && (next == seconds.size() || busy_until[w] < busy_until[next]))
        next = w;
    }
    ASSERT_LT(next, seconds.size()) << "nothing runs, but something waits";
    now = busy_until[next];
    const StartRun ended = waiting[next].front();
    waiting[next].erase(waiting[next].begin());
    busy_until[next] = now + seconds[next];
    queue.StepsTook(ended.worker, ended.function, seconds[next]);
    queue.StepDone(ended.function, ended.run, 0);
    queue.RunEnded(ended.function, ended.run);
  }
  EXPECT_LE(now, kFunctions / 3.1 + 3);
}

}  // namespace
}  // namespace mu
