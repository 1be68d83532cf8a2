#include "worker/core/run_queue.h"

#include "tests/testing/matchers.h"
#include "tests/worker/core/actions.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::IsEmpty;
using testing::Take;

// A run's call has the number of its function.
class RunQueueTest : public ::testing::Test {
 protected:
  absl::Status Add(uint64_t id) {
    WorkerRun run;
    run.call = CallId(id);
    run.function = FunctionId(id);
    return queue_.Add(std::move(run), &actions_);
  }
  // The function that starts now; 0: none.
  uint64_t Start() {
    const WorkerRun* const run = queue_.Start();
    return run == nullptr ? 0 : run->function.value();
  }
  uint64_t EndAndStart() {
    queue_.Ended(&actions_);
    return Start();
  }

  RunQueue queue_;
  WorkerActions actions_;
};

TEST_F(RunQueueTest, OneAfterTheOtherInOrderOfArrival) {
  for (uint64_t id : {3, 1, 2}) MU_ASSERT_OK(Add(id));
  EXPECT_EQ(Start(), 3u);
  EXPECT_EQ(Start(), 0u) << "one runs";
  EXPECT_EQ(EndAndStart(), 1u);
  EXPECT_EQ(EndAndStart(), 2u);
  EXPECT_EQ(EndAndStart(), 0u);
}

TEST_F(RunQueueTest, CancelWaitsForTheRunningOneOnly) {
  for (uint64_t id : {1, 2, 3}) MU_ASSERT_OK(Add(id));
  EXPECT_EQ(Start(), 1u);
  queue_.CancelBelow(FunctionId(3), CallId(90), &actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("end 2 CANCELLED")) << "function 1 may still push";
  EXPECT_TRUE(queue_.running()->aborted);
  EXPECT_EQ(EndAndStart(), 3u);
  EXPECT_THAT(Take(&actions_), ElementsAre("cancelled 90"));
}

TEST_F(RunQueueTest, CancelWithNothingToCancelIsAnsweredAtOnce) {
  queue_.CancelBelow(FunctionId(5), CallId(90), &actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("cancelled 90"));
  MU_ASSERT_OK(Add(5));
  EXPECT_EQ(Start(), 5u);
  queue_.CancelBelow(FunctionId(5), CallId(91), &actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("cancelled 91"))
      << "the one that runs is not below the bound";
  EXPECT_FALSE(queue_.running()->stopped);
}

TEST_F(RunQueueTest, CancelledFunctionsThatArriveLateAreRefused) {
  queue_.CancelBelow(FunctionId(5), CallId(90), &actions_);
  EXPECT_THAT(Add(4), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(Add(5));
  queue_.ForgetCancelled();
  MU_EXPECT_OK(Add(4)) << "the servers went back: it is a repeat";
}

TEST_F(RunQueueTest, ANewEpochEndsEverythingAndStartsAfresh) {
  queue_.CancelBelow(FunctionId(100), CallId(90), &actions_);
  MU_ASSERT_OK(Add(100));
  EXPECT_EQ(Start(), 100u);
  MU_ASSERT_OK(Add(101));
  Take(&actions_);
  queue_.Reset(absl::AbortedError("a new coordinator"), &actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("end 101 ABORTED"));
  EXPECT_THAT(queue_.running()->why, HasCode(absl::StatusCode::kAborted));
  EXPECT_EQ(EndAndStart(), 0u);
  MU_ASSERT_OK(Add(1)) << "cancelled in the former epoch";
  EXPECT_EQ(Start(), 1u);
}

TEST_F(RunQueueTest, DrainHandsBackWhatWaitsAndWhatComes) {
  MU_ASSERT_OK(Add(1));
  MU_ASSERT_OK(Add(2));
  EXPECT_EQ(Start(), 1u);
  queue_.Drain(&actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("end 2 OK handed back"));
  EXPECT_TRUE(queue_.running()->handed_back);
  EXPECT_EQ(queue_.active(), 1u);
  MU_ASSERT_OK(Add(3));
  EXPECT_THAT(Take(&actions_), ElementsAre("end 3 OK handed back"));
  EXPECT_EQ(EndAndStart(), 0u);
  EXPECT_EQ(queue_.active(), 0u);
}

TEST_F(RunQueueTest, AfterShutdownEverythingIsRefused) {
  MU_ASSERT_OK(Add(1));
  queue_.Shutdown(&actions_);
  EXPECT_THAT(Take(&actions_), ElementsAre("end 1 UNAVAILABLE"));
  EXPECT_THAT(Add(2), HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(RunQueueTest, OneWhoseCallerIsGoneIsStoppedWhereverItIs) {
  MU_ASSERT_OK(Add(1));
  MU_ASSERT_OK(Add(2));
  EXPECT_EQ(Start(), 1u);
  for (uint64_t id : {1, 2, 9}) queue_.CallerGone(CallId(id));
  EXPECT_TRUE(queue_.running()->aborted);
  EXPECT_EQ(EndAndStart(), 2u);
  EXPECT_TRUE(queue_.running()->aborted);
  EXPECT_THAT(Take(&actions_), IsEmpty());
}

TEST(WorkerRunTest, HandingBackAbortsNothingUntilItIsStopped) {
  WorkerRun run;
  run.HandBack();
  EXPECT_TRUE(run.stopped);
  EXPECT_TRUE(run.handed_back);
  EXPECT_FALSE(run.aborted);
  run.Stop(absl::CancelledError("later"));
  EXPECT_TRUE(run.aborted);
  MU_EXPECT_OK(run.why) << "the first reason counts";
}

TEST(WorkerRunTest, AStoppedRunKeepsTheFirstReasonAndIsNotHandedBack) {
  WorkerRun run;
  run.Stop(absl::AbortedError("first"));
  run.Stop(absl::CancelledError("second"));
  run.HandBack();
  EXPECT_FALSE(run.handed_back);
  EXPECT_THAT(run.why, HasCode(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace mu
