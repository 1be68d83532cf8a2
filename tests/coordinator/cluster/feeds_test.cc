// Streams to workers whose connections break, and workers that know no streams.
#include <thread>

#include "common/base/caller_gone.h"
#include "common/rpc/faults.h"
#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::PlayedWorker;

class FeedsTest : public testing::PlayedClusterTest {
 protected:
  FeedsTest() { options_.transport = faulty_.get(); }
  ~FeedsTest() override { runtime_ = nullptr; }  // it uses what is below

  const std::shared_ptr<FaultPlan> faults_ = std::make_shared<FaultPlan>(1);
  const std::unique_ptr<Transport> faulty_ =
      NewFaultyTransport(std::shared_ptr<Transport>(transport_.get(), [](Transport*) {}), faults_);
};

TEST_F(FeedsTest, ABrokenConnectionCostsNothing) {
  Start(2);
  auto worker = Worker(11, 0);
  const RemoteValue first = Schedule(3), second = Schedule(1);
  const auto run = worker->NextRun(), other = worker->NextRun();
  PlayedWorker::Step(run, 0, 1.0f);
  while (runtime_->Counts().steps < 1) std::this_thread::yield();
  faults_->Add({.method = "/Feed/Result", .fault = Fault::kLoseReply, .times = 2});
  PlayedWorker::Step(run, 1, 2.0f);
  PlayedWorker::Step(run, 2, 3.0f);
  run.call->Finish(absl::OkStatus(), {});
  PlayedWorker::Finish(other);
  MU_ASSERT_OK(runtime_->Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, first.Fetch());
  EXPECT_EQ(result.steps(), 3u);
  MU_EXPECT_OK(second.Fetch());
  EXPECT_EQ(faults_->hits(), 2);
  EXPECT_EQ(worker->feed.connections, 3);
  EXPECT_FALSE(run.call->IsCancelled());
  const RuntimeStats stats = runtime_->Stats();
  EXPECT_THAT(stats.failures, ::testing::IsEmpty());
  EXPECT_EQ(stats.runs, 2u);
  EXPECT_EQ(stats.steps, 4u);
}

TEST_F(FeedsTest, ARunThatIsTooLargeForAMessageFailsAndTheWorkerStays) {
  options_.most_run_bytes = 10'000;
  Start(2);
  auto worker = Worker(11, 0);
  auto args = std::make_shared<std::vector<pb::TensorProto>>(1);
  (*args)[0].set_data(std::string(10'000, 'x'));
  const RemoteValue large = runtime_->Schedule(
      {.fingerprint = Fingerprint(5), .steps = 1, .needs_version = 1, .args = std::move(args)},
      {"x"});
  EXPECT_THAT(runtime_->Join(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("but a message has 10000 at most")));
  EXPECT_THAT(large.Fetch(), testing::HasCode(absl::StatusCode::kInvalidArgument));
  const RemoteValue small = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(small.Fetch());
  EXPECT_THAT(runtime_->Stats().failures, ::testing::IsEmpty());
  EXPECT_EQ(worker->feed.connections, 1);
}

// What is on its way to the worker comes again, too, in the same order.
TEST_F(FeedsTest, RunsThatAreLostWithTheirConnectionComeOnce) {
  Start(3);
  auto worker = Worker(11, 0);
  faults_->Add({.method = "/Feed/Run", .fault = Fault::kLoseRequest, .times = 3});
  for (int i = 0; i < 3; ++i) Schedule(1);
  uint64_t before = 0;
  for (int i = 0; i < 3; ++i) {
    const auto run = worker->NextRun();
    EXPECT_GT(run.request.run(), before);
    before = run.request.run();
    PlayedWorker::Finish(run);
  }
  MU_ASSERT_OK(runtime_->Join());
  EXPECT_THAT(runtime_->Stats().failures, ::testing::IsEmpty());
  EXPECT_EQ(runtime_->Stats().runs, 3u);
}

// As it does when the coordinator stands still for longer than the worker's patience.
TEST_F(FeedsTest, ARunThatItsWorkerGaveUpGoesOnThere) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(2);
  const auto run = worker->NextRun();
  PlayedWorker::Step(run, 0, 1.0f);
  run.call->Finish(CallerGoneError(), {});
  const auto again = worker->NextRun();
  EXPECT_EQ(again.request.first_step(), 1u);
  PlayedWorker::Finish(again);
  MU_ASSERT_OK(runtime_->Join());
  MU_EXPECT_OK(value.Fetch());
  EXPECT_THAT(runtime_->Stats().failures, ::testing::IsEmpty());
  EXPECT_EQ(runtime_->Stats().steps, 2u);
  EXPECT_EQ(worker->feed.connections, 1);
}

TEST_F(FeedsTest, ADeadProcessIsLostAtOnce) {
  options_.timeout = absl::Minutes(10);
  Start(2);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  worker->NextRun();
  worker->Die();
  auto another = Worker(12, 1);
  PlayedWorker::Finish(another->NextRun());
  MU_EXPECT_OK(value.Fetch());
  ASSERT_EQ(runtime_->Stats().failures.size(), 1u);
  EXPECT_EQ(runtime_->Stats().failures[0].kind, "unreachable");
}

TEST_F(FeedsTest, AWorkerThatCannotBeReachedIsLostAfterTheTimeout) {
  options_.timeout = absl::Milliseconds(300);
  Start(2);
  auto worker = Worker(11, 0);
  faults_->Add({.method = "/muster.Worker/Feed", .fault = Fault::kLoseRequest});
  const RemoteValue value = Schedule(1);
  while (runtime_->Stats().failures.empty()) std::this_thread::yield();
  faults_->Clear();
  auto another = Worker(12, 1);
  PlayedWorker::Finish(another->NextRun());
  MU_EXPECT_OK(value.Fetch());
}

}  // namespace
}  // namespace mu
