// Workers that cannot do what others can: they are set aside, and the work is done elsewhere.
#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::PlayedWorker;
using testing::StatusIs;
using SetAsideTest = testing::PlayedClusterTest;

absl::Status Lacks(pb::InputFault::Kind fault) {
  return WithInputFault(absl::NotFoundError("cannot open clicks.csv"), fault, /*file=*/0);
}

absl::Status NotInstalled() {
  return WithKind(absl::FailedPreconditionError("function 5 is not installed"),
                  pb::ERROR_NOT_INSTALLED, pb::ROLE_WORKER);
}

TEST_F(SetAsideTest, AWorkerThatSeesNoDataGetsNoOtherFunction) {
  Start(1);
  auto blind = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const auto run = blind->NextRun();
  auto second = Worker(12, 1);
  const RemoteValue other = Schedule(1);
  PlayedWorker::Finish(second->NextRun());
  MU_ASSERT_OK(other.Fetch());
  run.call->Finish(Lacks(pb::InputFault::MISSING));
  PlayedWorker::Finish(second->NextRun());
  MU_EXPECT_OK(value.Fetch());
  // Each of them is done by the same worker, one after the other.
  std::vector<RemoteValue> values;
  for (int i = 0; i < 5; ++i) values.push_back(Schedule(1));
  for (int i = 0; i < 5; ++i) PlayedWorker::Finish(second->NextRun());
  MU_EXPECT_OK(runtime_->Join());
  ASSERT_EQ(runtime_->Stats().failures.size(), 1u);
  const MemberFailure failure = runtime_->Stats().failures[0];
  EXPECT_EQ(failure.kind, "set_aside");
  EXPECT_EQ(failure.index, 0u);
  EXPECT_THAT(failure.message, HasSubstr("clicks.csv"));
  EXPECT_EQ(runtime_->Status().members(0).state(), "set aside");
  EXPECT_EQ(runtime_->Status().members(1).state(), "ready");
  // Another process in its place is given work.
  auto again = Worker(13, 0);
  const RemoteValue first = Schedule(1), last = Schedule(1);
  PlayedWorker::Finish(again->NextRun());
  PlayedWorker::Finish(second->NextRun());
  MU_EXPECT_OK(runtime_->Join());
}

TEST_F(SetAsideTest, DataThatNoWorkerSeesIsWrong) {
  Start(1);
  auto first = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const auto run = first->NextRun();
  auto second = Worker(12, 1);
  const RemoteValue other = Schedule(1);
  const auto beside = second->NextRun();
  run.call->Finish(Lacks(pb::InputFault::MISSING));
  while (runtime_->Stats().failures.empty()) std::this_thread::yield();
  beside.call->Finish(Lacks(pb::InputFault::MISSING));
  const absl::Status status = runtime_->Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("clicks.csv")));
  EXPECT_EQ(KindOf(status), pb::ERROR_USER);
  // The data was at fault: both run what comes next.
  const RemoteValue next = Schedule(1), last = Schedule(1);
  PlayedWorker::Finish(first->NextRun());
  PlayedWorker::Finish(second->NextRun());
  MU_EXPECT_OK(runtime_->Join());
}

TEST_F(SetAsideTest, AWorkerThatIsAloneTriesThreeTimes) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  for (int i = 0; i < 3; ++i) worker->NextRun().call->Finish(Lacks(pb::InputFault::MISSING));
  EXPECT_EQ(KindOf(runtime_->Join()), pb::ERROR_USER);
  EXPECT_THAT(value.Fetch(), HasCode(absl::StatusCode::kNotFound));
  EXPECT_TRUE(runtime_->Stats().failures.empty());
}

TEST_F(SetAsideTest, WithoutAWorkerThatIsWellTheJobEnds) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  worker->NextRun().call->Finish(Lacks(pb::InputFault::DEVICE));
  const absl::Status status = runtime_->Join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               HasSubstr("no worker is left: all 1 were set aside; the last was "
                                         "worker 0")));
  EXPECT_THAT(status.message(), HasSubstr("clicks.csv"));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE);
  EXPECT_FALSE(value.Fetch().ok());
}

TEST_F(SetAsideTest, AWorkerThatCannotInstallIsSetAside) {
  Start(1);
  auto good = Worker(11, 0);
  PlayedWorker::Finish([&] {
    Schedule(1);
    return good->NextRun();
  }());
  auto broken = Worker(12, 1, {}, /*cannot=*/true);
  while (runtime_->Stats().failures.empty()) std::this_thread::yield();
  EXPECT_EQ(runtime_->Stats().failures[0].kind, "set_aside");
  EXPECT_THAT(runtime_->Stats().failures[0].message, HasSubstr("its disk is broken"));
  for (int i = 0; i < 3; ++i) Schedule(1);
  for (int i = 0; i < 3; ++i) PlayedWorker::Finish(good->NextRun());
  MU_EXPECT_OK(runtime_->Join());
  EXPECT_EQ(runtime_->Stats().failures.size(), 1u);
}

TEST_F(SetAsideTest, NobodyCanInstall) {
  Start(1);
  auto first = Worker(11, 0, {}, /*cannot=*/true);
  absl::StatusOr<bool> done = true;
  while (done.ok()) done = runtime_->Done();
  EXPECT_EQ(KindOf(done.status()), pb::ERROR_MACHINE) << done.status();
  EXPECT_THAT(done.status().message(), HasSubstr("its disk is broken"));
}

// As a worker does that has started anew behind the same connection.
TEST_F(SetAsideTest, AWorkerThatLacksTheFunctionIsGivenItAgainAndThenRunsIt) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(2);
  const auto run = worker->NextRun();
  EXPECT_EQ(worker->installed, 1);
  PlayedWorker::Step(run, 0, 7.0f);
  run.call->Finish(NotInstalled());
  const auto again = worker->NextRun();
  EXPECT_EQ(worker->installed, 2) << "it was installed before it was sent again";
  EXPECT_EQ(again.request.first_step(), 1u);
  EXPECT_EQ(again.request.function(), value.id().value());
  again.call->Finish(NotInstalled());
  const auto last = worker->NextRun();
  EXPECT_EQ(worker->installed, 3);
  PlayedWorker::Finish(last);
  MU_EXPECT_OK(runtime_->Join());
  const RemoteValue next = Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_EXPECT_OK(next.Fetch());
  EXPECT_EQ(worker->installed, 3);
  EXPECT_TRUE(runtime_->Stats().failures.empty());
}

// Meanwhile another one has it.
TEST_F(SetAsideTest, AFunctionThatOneWorkerLacksGoesToOthers) {
  Start(1);
  auto first = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const auto run = first->NextRun();
  auto second = Worker(12, 1);
  const RemoteValue beside = Schedule(1);
  const auto held = second->NextRun();
  run.call->Finish(NotInstalled());
  PlayedWorker::Finish(held);
  // Whichever is ready first.
  const auto either = [&] {
    while (true) {
      for (PlayedWorker* worker : {first.get(), second.get()}) {
        MutexLock lock(&worker->mutex);
        if (worker->runs.empty()) continue;
        auto found = std::move(worker->runs.front());
        worker->runs.pop_front();
        return found;
      }
      std::this_thread::yield();
    }
  };
  PlayedWorker::Finish(either());
  MU_EXPECT_OK(value.Fetch());
  MU_EXPECT_OK(runtime_->Join());
}

// All results had come before it said so.
TEST_F(SetAsideTest, ALateErrorOfAMachineKeepsNobodyWaiting) {
  Start(1);
  auto worker = Worker(11, 0);
  const RemoteValue value = Schedule(1);
  const auto run = worker->NextRun();
  PlayedWorker::Step(run, 0, 7.0f);
  run.call->Finish(NotInstalled());
  MU_EXPECT_OK(value.Fetch());
  MU_EXPECT_OK(runtime_->Join());
}

}  // namespace
}  // namespace mu
