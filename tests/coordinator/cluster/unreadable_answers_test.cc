// Workers whose answers cannot be read, and functions that nobody survives.
#include <thread>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::PlayedWorker;
using testing::StatusIs;
using UnreadableAnswersTest = testing::PlayedClusterTest;

TEST_F(UnreadableAnswersTest, AWorkerThatMakesNoSenseCountsAsLost) {
  Start(1);
  auto first = Worker(11, 0);
  const RemoteValue value = Schedule(2);
  const auto run = first->NextRun();
  PlayedWorker::Step(run, 0, 7.0f);
  run.call->Send(Buffer("\xFF\xFF no RunReply"));
  run.call->Finish(absl::OkStatus());
  auto second = Worker(12, 1);
  const auto resumed = second->NextRun();
  EXPECT_EQ(resumed.request.first_step(), 1u) << "what made sense is kept";
  PlayedWorker::Finish(resumed);
  MU_ASSERT_OK(runtime_->Join());
  MU_EXPECT_OK(value.Fetch());
  ASSERT_EQ(runtime_->Stats().failures.size(), 1u);
  EXPECT_EQ(runtime_->Stats().failures[0].kind, "unreadable");
  EXPECT_THAT(runtime_->Stats().failures[0].message, HasSubstr("worker 0"));
}

TEST_F(UnreadableAnswersTest, AFunctionWhoseAnswersMakeNoSenseEnds) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const RemoteValue queued = Schedule(1);
  pb::RunReply no_tensor;
  no_tensor.add_steps()->add_returns()->set_data("of no type");
  for (int tries = 0; tries < 3; ++tries) {
    const auto run = worker->NextRun();
    EXPECT_EQ(run.request.function(), value.id().value());
    if (tries == 0) run.call->Send(Buffer("\xFF\xFF no RunReply"));
    if (tries == 1) run.call->Send(Buffer(no_tensor.SerializeAsString()));
    run.call->Finish(absl::OkStatus());  // the last one without a result
    if (tries == 2) break;
    while (runtime_->Stats().failures.size() < static_cast<size_t>(tries) + 1)
      std::this_thread::yield();
    worker->Register();  // as its next heartbeat would make it
  }
  const absl::Status status = runtime_->Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("worker 0")));
  EXPECT_THAT(status.message(), HasSubstr("function 1 ('step')"));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kInternal));
  EXPECT_THAT(queued.Fetch(), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(runtime_->Join());
  worker->Register();
  const RemoteValue again = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(again.Fetch());
}

// As a step does that needs more memory than a worker has.
TEST_F(UnreadableAnswersTest, AFunctionThatEndsItsWorkersEnds) {
  Start(1);
  const RemoteValue value = Schedule(2);
  const RemoteValue queued = Schedule(1);
  constexpr uint64_t kMostLost = 10;
  constexpr uint64_t kLosses = 2 + kMostLost;
  for (uint64_t i = 0; i < kLosses; ++i) {
    auto worker = Worker(11 + i, 0);
    const auto run = worker->NextRun();
    EXPECT_EQ(run.request.function(), value.id().value());
    if (i == 2) PlayedWorker::Step(run, 0, 1.0f);
    run.call->Finish(absl::UnavailableError("connection reset"));
    while (runtime_->Stats().failures.size() <= i) std::this_thread::yield();
    EXPECT_EQ(value.Done(), i == kLosses - 1) << "two were lost before there was a result";
  }
  const absl::Status status = runtime_->Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               HasSubstr("10 workers in a row were lost while they ran step 1 of "
                                         "function 1 ('step')")));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_THAT(queued.Fetch(), HasCode(absl::StatusCode::kCancelled));
  MU_EXPECT_OK(runtime_->Join());
  auto worker = Worker(99, 0);
  const RemoteValue again = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(again.Fetch());
}

}  // namespace
}  // namespace mu
