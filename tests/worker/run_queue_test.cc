#include "worker/run_queue.h"

#include <algorithm>
#include <thread>

#include "tests/testing/matchers.h"
#include "tests/worker/fake_call.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::FakeCall;
using testing::HasCode;

// A queue whose runs are finished by hand.
class RunQueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeCall> Add(uint64_t id, uint64_t run = 0, uint64_t after = 0) {
    muster::RunRequest request;
    request.set_function(id);
    request.set_run(run);
    request.set_after(after);
    auto call = std::make_shared<FakeCall>();
    queue_.Add(std::make_shared<FunctionRun>(std::move(request), call));
    return call;
  }
  void WaitUntilRunning(uint64_t id) {
    MutexLock lock(&mutex_);
    while (started_.empty() || started_.back() != id) changed_.Wait(&mutex_);
  }
  void Release(uint64_t id) {
    MutexLock lock(&mutex_);
    released_.push_back(id);
    changed_.SignalAll();
  }
  std::vector<uint64_t> started() {
    MutexLock lock(&mutex_);
    return started_;
  }

 private:
  void Execute(FunctionRun& run) {
    if (!run.stopped()) {
      MutexLock lock(&mutex_);
      started_.push_back(run.id());
      changed_.SignalAll();
      while (std::find(released_.begin(), released_.end(), run.id()) == released_.end()) {
        changed_.Wait(&mutex_);
      }
    }
    run.call()->Finish(run.stopped() ? run.why() : absl::OkStatus());
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<uint64_t> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint64_t> released_ ABSL_GUARDED_BY(mutex_);

 protected:
  RunQueue queue_{[this](FunctionRun& run) { Execute(run); }, absl::InfiniteDuration()};
};

TEST_F(RunQueueTest, OneAfterTheOtherInOrderOfArrival) {
  auto a = Add(3), b = Add(1), c = Add(2);
  for (uint64_t id : {1, 2, 3}) Release(id);
  for (const auto& call : {a, b, c}) MU_EXPECT_OK(call->Wait());
  EXPECT_THAT(started(), ElementsAre(3, 1, 2));
}

TEST_F(RunQueueTest, InOrderOfDispatchAlthoughTheyArriveInAnother) {
  for (uint64_t id : {1, 2, 3, 4, 5}) Release(id);
  auto e = Add(5, 14, 13), d = Add(4, 13, 12), b = Add(2, 11, 10), c = Add(3, 12, 11);
  EXPECT_THAT(started(), ::testing::IsEmpty());
  auto a = Add(1, 10);
  for (const auto& call : {a, b, c, d, e}) MU_EXPECT_OK(call->Wait());
  EXPECT_THAT(started(), ElementsAre(1, 2, 3, 4, 5));
  Release(6);
  MU_EXPECT_OK(Add(6, 20, 14)->Wait()) << "what is finished is not waited for";
}

TEST_F(RunQueueTest, ARefusedRunHoldsNobodyUp) {
  auto b = Add(2, 11, 10);
  Release(2);
  queue_.Refused(10);
  MU_EXPECT_OK(b->Wait());
}

TEST_F(RunQueueTest, AWaitingRunIsCancelledLikeAnyOther) {
  auto b = Add(2, 11, 10);
  queue_.CancelBelow(3, [] {});
  EXPECT_THAT(b->Wait(), HasCode(absl::StatusCode::kCancelled));
  auto c = Add(3, 12, 10);
  queue_.Drain(absl::InfiniteDuration());
  MU_EXPECT_OK(c->Wait());
  EXPECT_TRUE(c->handed_back());
}

TEST(RunQueueOrderTest, APredecessorThatNeverComesIsNotWaitedForForever) {
  RunQueue queue([](FunctionRun& run) { run.call()->Finish(absl::OkStatus()); },
                 absl::Milliseconds(1));
  muster::RunRequest request;
  request.set_run(11);
  request.set_after(10);
  const auto call = std::make_shared<FakeCall>();
  queue.Add(std::make_shared<FunctionRun>(std::move(request), call));
  MU_EXPECT_OK(call->Wait());
}

TEST_F(RunQueueTest, CancelWaitsForTheRunningOneOnly) {
  auto a = Add(1), b = Add(2), c = Add(3);
  WaitUntilRunning(1);
  Notification cancelled;
  queue_.CancelBelow(3, [&] { cancelled.Notify(); });
  EXPECT_THAT(b->Wait(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_FALSE(cancelled.HasBeenNotified()) << "a step of function 1 may still push";
  Release(1);
  cancelled.Wait();
  EXPECT_THAT(a->Wait(), HasCode(absl::StatusCode::kCancelled));
  Release(3);
  MU_EXPECT_OK(c->Wait());
  EXPECT_THAT(started(), ElementsAre(1, 3));
}

TEST_F(RunQueueTest, CancelWithNothingToCancelAnswersAtOnce) {
  Notification first;
  queue_.CancelBelow(5, [&] { first.Notify(); });
  EXPECT_TRUE(first.HasBeenNotified());
  auto a = Add(5);
  WaitUntilRunning(5);
  Notification second;
  queue_.CancelBelow(5, [&] { second.Notify(); });
  EXPECT_TRUE(second.HasBeenNotified()) << "the one that runs is not below the bound";
  Release(5);
  MU_EXPECT_OK(a->Wait());
}

TEST_F(RunQueueTest, CancelledFunctionsThatArriveLateAreRefused) {
  queue_.CancelBelow(5, [] {});
  EXPECT_THAT(Add(4)->Wait(), HasCode(absl::StatusCode::kCancelled));
  auto a = Add(5);
  Release(5);
  MU_EXPECT_OK(a->Wait());
}

TEST_F(RunQueueTest, ANewEpochEndsEverythingAndStartsAfresh) {
  queue_.CancelBelow(100, [] {});
  auto a = Add(100);
  WaitUntilRunning(100);
  auto b = Add(101);
  queue_.Reset(absl::AbortedError("a new coordinator"));
  EXPECT_THAT(b->Wait(), HasCode(absl::StatusCode::kAborted));
  Release(100);
  EXPECT_THAT(a->Wait(), HasCode(absl::StatusCode::kAborted));
  auto c = Add(1);
  Release(1);
  MU_EXPECT_OK(c->Wait());
}

TEST_F(RunQueueTest, DrainReturnsWhenNothingRunsAndHandsBackWhatComes) {
  auto a = Add(1), b = Add(2);
  WaitUntilRunning(1);
  std::thread drain([&] { queue_.Drain(absl::InfiniteDuration()); });
  MU_EXPECT_OK(b->Wait());
  EXPECT_TRUE(b->handed_back());
  EXPECT_EQ(queue_.active(), 1u);
  Release(1);
  drain.join();
  EXPECT_EQ(queue_.active(), 0u);
  MU_EXPECT_OK(a->Wait());
  const auto late = Add(3);
  MU_EXPECT_OK(late->Wait());
  EXPECT_TRUE(late->handed_back());
}

TEST(RunTest, HandingBackAbortsNothingUntilPatienceEnds) {
  FunctionRun run({}, std::make_shared<FakeCall>());
  int aborted = 0;
  run.SetAbort([&] { ++aborted; });
  run.HandBack();
  EXPECT_TRUE(run.stopped());
  EXPECT_TRUE(run.handed_back());
  EXPECT_EQ(aborted, 0);
  run.Stop(absl::OkStatus());
  EXPECT_EQ(aborted, 1);
  MU_EXPECT_OK(run.why());
  run.SetAbort(nullptr);
}

TEST(RunTest, StopAbortsWhatWaitsAndKeepsTheFirstReason) {
  FunctionRun run({}, std::make_shared<FakeCall>());
  int aborted = 0;
  run.SetAbort([&] { ++aborted; });
  run.Stop(absl::AbortedError("first"));
  run.Stop(absl::CancelledError("second"));
  EXPECT_EQ(aborted, 1);
  EXPECT_THAT(run.why(), HasCode(absl::StatusCode::kAborted));
  run.SetAbort([&] { ++aborted; });
  EXPECT_EQ(aborted, 2) << "set after the stop: called at once";
  run.SetAbort(nullptr);
}

}  // namespace
}  // namespace mu
