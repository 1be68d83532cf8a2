// The runtime against workers that are played by the test, over the transport in memory.
#include <atomic>
#include <thread>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::PlayedClusterTest;
using testing::PlayedWorker;
using testing::StatusIs;

class RuntimeTest : public PlayedClusterTest {
 protected:
  // A function of the user fails, and the server confirms the fence at the fourth try.
  void FailWithASlowFence() {
    Start();
    servers_.fence = [this](const pb::RequestContext&) {
      return ++fences_ < 4 ? absl::UnavailableError("it stalls") : absl::OkStatus();
    };
    failing_ = Worker(11);
    RegisterServer(4242);
    Schedule(1);
    failing_->NextRun().call->Finish(testing::UsersError("no"));
  }

  std::atomic<int> fences_{0};

 private:
  std::unique_ptr<PlayedWorker> failing_;
};

TEST_F(RuntimeTest, InstallsThenRunsAndJoins) {
  Start();
  auto worker = Worker(11);
  const RemoteValue value = Schedule(3);
  const auto run = worker->NextRun();
  EXPECT_EQ(worker->installed, 1);
  EXPECT_EQ(run.request.steps(), 3u);
  EXPECT_EQ(run.request.context().job(), 9u);
  MU_ASSERT_OK_AND_ASSIGN(const bool done, runtime_->Done());
  EXPECT_FALSE(done);
  PlayedWorker::Finish(run);
  MU_ASSERT_OK(runtime_->Join());
  MU_ASSERT_OK(runtime_->Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
  EXPECT_EQ(result.steps(), 3u);
  MU_ASSERT_OK_AND_ASSIGN(const double mean, result.Mean("x"));
  EXPECT_EQ(mean, 1.0);
  EXPECT_THAT(result.Get(0, "y"), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(RuntimeTest, ALostWorkersFunctionResumesOnAnother) {
  Start(1);
  auto first = Worker(11);
  const RemoteValue value = Schedule(4);
  const auto run = first->NextRun();
  PlayedWorker::Step(run, 0, 7.0f);
  PlayedWorker::Step(run, 1, 7.0f);
  // Only what has arrived counts: wait for it.
  while (runtime_->Stats().steps < 2) std::this_thread::yield();
  first->Die();
  auto second = Worker(12);
  const auto resumed = second->NextRun();
  EXPECT_EQ(resumed.request.function(), run.request.function());
  EXPECT_EQ(resumed.request.first_step(), 2u);
  PlayedWorker::Finish(resumed);
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
  EXPECT_EQ(result.steps(), 4u);
  ASSERT_EQ(runtime_->Stats().failures.size(), 1u);
  EXPECT_EQ(runtime_->Stats().failures[0].index, 0u);
}

TEST_F(RuntimeTest, AWorkerThatLeavesHandsBackAndIsHeardToTheEnd) {
  Start(2);
  auto first = Worker(11, 0);
  const RemoteValue value = Schedule(4);
  const RemoteValue next = Schedule(1);
  auto run = first->NextRun();
  auto waiting = first->NextRun();
  if (run.request.function() != value.id().value()) std::swap(run, waiting);
  PlayedWorker::HandBack(waiting);
  absl::Status left = absl::UnknownError("not called");
  std::thread leaving([&] { left = first->Leave(); });
  // Whether the goodbye or the last result is faster: the result counts.
  PlayedWorker::Step(run, 0, 7.0f);
  PlayedWorker::Step(run, 1, 7.0f);
  PlayedWorker::HandBack(run);
  leaving.join();
  MU_EXPECT_OK(left);
  auto second = Worker(12, 1);
  auto resumed = second->NextRun();
  auto other = second->NextRun();
  if (resumed.request.function() != value.id().value()) std::swap(resumed, other);
  EXPECT_EQ(resumed.request.first_step(), 2u);
  PlayedWorker::Finish(resumed);
  PlayedWorker::Finish(other);
  MU_ASSERT_OK(runtime_->Join());
  MU_EXPECT_OK(next.Fetch());
  ASSERT_EQ(runtime_->Stats().failures.size(), 1u);
  EXPECT_EQ(runtime_->Stats().failures[0].kind, "left");
}

TEST_F(RuntimeTest, TheFirstErrorIsReportedOnceAndNothingRunsAfterIt) {
  Start();
  auto worker = Worker(11);
  const RemoteValue bad = Schedule(1);
  const RemoteValue running = Schedule(1);
  const RemoteValue queued = Schedule(1);
  // Two are in flight, in either order of arrival.
  auto run = worker->NextRun();
  auto other = worker->NextRun();
  if (run.request.function() != bad.id().value()) std::swap(run, other);
  run.call->Finish(testing::UsersError("op 'log' at model.cc:12: no"));
  EXPECT_THAT(runtime_->Join(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("model.cc:12")));
  EXPECT_EQ(worker->cancelled_below, 4u);
  EXPECT_EQ(fenced_below_, 4u);
  EXPECT_THAT(bad.Fetch(), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(running.Fetch(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(queued.Fetch(), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(runtime_->Join());
  const RemoteValue again = Schedule(1);
  other.call->Finish(absl::CancelledError("too late to matter"));
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(again.Fetch());
}

// Users are told when no server may apply anything of it any more, and not before.
TEST_F(RuntimeTest, AnErrorIsReportedWhenTheServersAreFenced) {
  FailWithASlowFence();
  EXPECT_THAT(runtime_->Join(), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(fences_, 4);
}

TEST_F(RuntimeTest, AServerThatIsLostNeedsNoFence) {
  Start();
  servers_.fence = [&](const pb::RequestContext&) {
    runtime_->DaemonDied(4242, "killed by SIGKILL");
    return absl::UnavailableError("it is gone");
  };
  auto worker = Worker(11);
  RegisterServer(4242);
  Schedule(1);
  worker->NextRun().call->Finish(testing::UsersError("no"));
  EXPECT_FALSE(runtime_->Join().ok()) << "it returns";
}

TEST_F(RuntimeTest, OfTwoErrorsTheEarlierOneIsReportedAlthoughItArrivesLater) {
  Start();
  auto worker = Worker(11);
  const RemoteValue first = Schedule(1);
  const RemoteValue second = Schedule(1);
  auto run = worker->NextRun();
  auto other = worker->NextRun();
  if (run.request.function() != first.id().value()) std::swap(run, other);
  other.call->Finish(testing::UsersError("second"));
  run.call->Finish(testing::UsersError("first"));
  EXPECT_THAT(runtime_->Join(), StatusIs(absl::StatusCode::kInvalidArgument, "first"));
  EXPECT_THAT(first.Fetch(), StatusIs(absl::StatusCode::kInvalidArgument, "first"));
  EXPECT_THAT(second.Fetch(), HasCode(absl::StatusCode::kCancelled));
}

TEST_F(RuntimeTest, AnErrorThatNobodyLookedAtStaysForJoin) {
  Start(1);
  auto worker = Worker(11);
  Schedule(1);
  worker->NextRun().call->Finish(testing::UsersError("bad"));
  while (runtime_->Stats().unfinished > 0) std::this_thread::yield();
  { const RemoteValue refused = Schedule(1); }
  EXPECT_THAT(runtime_->Join(), StatusIs(absl::StatusCode::kInvalidArgument, "bad"));
  MU_EXPECT_OK(runtime_->Join());
}

TEST_F(RuntimeTest, AFullQueueBlocksScheduleUntilThereIsRoom) {
  Start(1, 2);
  auto worker = Worker(11);
  Schedule(1);
  const auto first = worker->NextRun();
  Schedule(1);
  Schedule(1);  // two wait now: the queue is full
  std::atomic<bool> returned{false};
  std::thread blocked([&] {
    Schedule(1);
    returned = true;
  });
  EXPECT_FALSE(returned);
  PlayedWorker::Finish(first);
  blocked.join();
  for (int i = 0; i < 3; ++i) PlayedWorker::Finish(worker->NextRun());
  MU_ASSERT_OK(runtime_->Join());
  EXPECT_EQ(runtime_->Stats().functions, 4u);
}

TEST_F(RuntimeTest, NoEpochStartsWhileFunctionsReadItsData) {
  Start();
  const RemoteValue value = runtime_->Schedule(
      {.fingerprint = Fingerprint(5), .steps = 1, .dataset = 1, .needs_version = 1}, {"x"});
  EXPECT_THAT(runtime_->StartEpoch(1, 0, nullptr), HasCode(absl::StatusCode::kFailedPrecondition));
  MU_EXPECT_OK(runtime_->StartEpoch(2, 0, nullptr)) << "an evaluation's, say";
  runtime_->Cancel(GroupId());
  MU_EXPECT_OK(runtime_->StartEpoch(1, 0, nullptr));
}

// Functions that are scheduled for the epoch are to start when training's error has been told.
TEST_F(RuntimeTest, AnEpochStartsWhenTrainingIsCancelled) {
  FailWithASlowFence();
  while (fences_ == 0) std::this_thread::yield();
  MU_EXPECT_OK(runtime_->StartEpoch(2, 0, nullptr));
  EXPECT_EQ(fences_, 4) << "the server has confirmed";
}

TEST_F(RuntimeTest, AnEpochThatCannotStartEndsWithAStopOrTheJob) {
  Start();
  std::atomic<int> asked{0}, stop{0};
  servers_.fence = [&](const pb::RequestContext&) {
    ++asked;
    return absl::UnavailableError("it stalls");
  };
  auto worker = Worker(11);
  RegisterServer(4242);
  Schedule(1);
  worker->NextRun().call->Finish(testing::UsersError("no"));
  while (asked == 0) std::this_thread::yield();
  const auto start = [&] { return runtime_->StartEpoch(2, 0, nullptr, &stop); };
  stop = 1;
  EXPECT_THAT(start(), HasCode(absl::StatusCode::kCancelled));
  stop = 0;
  absl::Status failed;
  {
    std::thread waiting([&] { failed = runtime_->StartEpoch(2, 0, nullptr); });
    runtime_->Fail(absl::UnavailableError("the job is over"));
    waiting.join();
  }
  EXPECT_THAT(failed, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("the job is over")));
  runtime_->Close();
  EXPECT_THAT(start(), HasCode(absl::StatusCode::kCancelled));
  runtime_.reset();  // the fence uses what ends here
}

TEST_F(RuntimeTest, EndsWithCallsUnderWay) {
  Start();
  auto worker = Worker(11);
  const RemoteValue value = Schedule(1);
  const auto run = worker->NextRun();
  runtime_.reset();
  EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kCancelled));
}

TEST_F(RuntimeTest, ALostServerEndsTheJobWithAMachineError) {
  Start();
  auto worker = Worker(11);
  RegisterServer(4242);
  Schedule(1);
  runtime_->DaemonDied(4242, "killed by SIGKILL; last lines: ...");
  const absl::Status status = runtime_->Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("killed by SIGKILL")));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_EQ(DetailOf(status)->role(), pb::ROLE_PSSERVER);
}

}  // namespace
}  // namespace mu
