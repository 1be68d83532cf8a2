// Errors of users while functions are repeated because a server was lost: against workers and a
// server that are played.
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/coordinator/cluster/played_worker.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using testing::PlayedWorker;
using testing::StatusIs;

class RepeatsTest : public testing::PlayedClusterTest {
 protected:
  ~RepeatsTest() override { runtime_.reset(); }  // it calls what is below

  // Workers with room for one function each.
  void StartWithServer(size_t workers) {
    Start(1);
    RegisterServer();
    servers_.restored = [this](const std::string& directory) {
      MutexLock lock(&mutex_);
      restored_.push_back(directory);
    };
    runtime_->EnableRecovery(RecoveryMode::kAll);
    MU_ASSERT_OK(runtime_->EnsureServers());
    for (size_t i = 0; i < workers; ++i) workers_.push_back(Worker(11 + i, static_cast<int>(i)));
  }
  void RegisterServer() {
    pb::RegisterRequest request;
    request.set_role(pb::ROLE_PSSERVER);
    request.set_address("memory:none");
    request.set_incarnation(++processes_);
    request.set_protocol(kProtocol);
    request.set_pid(processes_);
    const auto channel = transport_->Connect(runtime_->address(), pb::ROLE_COORDINATOR);
    MU_ASSERT_OK(Call<pb::RegisterReply>(*channel, "/muster.Coordinator/Register", request));
  }
  void ReplaceServer() {
    runtime_->DaemonDied(processes_, "killed");
    RegisterServer();
  }

  RemoteValue Update(uint64_t fingerprint = 5) {
    return runtime_->Schedule(
        {.fingerprint = Fingerprint(fingerprint), .steps = 1, .needs_version = 1, .trains = true},
        {"x"});
  }
  // The run of this function, on whichever worker it arrives.
  PlayedWorker::Run RunOf(FunctionId function) {
    while (true) {
      for (const auto& worker : workers_) {
        MutexLock lock(&worker->mutex);
        for (auto run = worker->runs.begin(); run != worker->runs.end(); ++run) {
          if (run->request.function() != function.value()) continue;
          PlayedWorker::Run found = std::move(*run);
          worker->runs.erase(run);
          return found;
        }
      }
      std::this_thread::yield();
    }
  }
  void FinishRunOf(const RemoteValue& value) { PlayedWorker::Finish(RunOf(value.id())); }

  // Three functions finished in a round of one and a round of two. They run again after the loss of
  // the server: two of them make a round, the third waits for another one. Nobody has said since
  // the last one was scheduled that nothing more comes.
  void RepeatInRounds() {
    StartWithServer(2);
    MU_ASSERT_OK(runtime_->SetRounds({.replicas = 2}));
    const RemoteValue first = Update();
    FinishRunOf(first);
    MU_ASSERT_OK(first.Fetch());
    const RemoteValue second = Update(), third = Update();
    FinishRunOf(second);
    FinishRunOf(third);
    testing::WaitWhile([&] { return !third.Done(); });
    ReplaceServer();
    for (const RemoteValue& value : {first, second, third}) FinishRunOf(value);
  }

  std::vector<std::unique_ptr<PlayedWorker>> workers_;
  int64_t processes_ = 0;
  Mutex mutex_;
  std::vector<std::string> restored_ ABSL_GUARDED_BY(mutex_);
};

// What has finished and is in no checkpoint holds the low-water mark down. An error ends the
// functions above it all the same.
TEST_F(RepeatsTest, AnErrorEndsTheFunctionsAboveTheLowWaterMark) {
  StartWithServer(1);
  const RemoteValue finished = Update();
  FinishRunOf(finished);
  MU_ASSERT_OK(finished.Fetch());
  const RemoteValue bad = Update(), running = Update(), last = Update();
  RunOf(bad.id()).call->Finish(testing::UsersError("no"));
  EXPECT_THAT(runtime_->Join(), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(runtime_->Context().low_water(), finished.id().value());
  EXPECT_EQ(workers_[0]->cancelled_below, last.id().value() + 1);
  EXPECT_EQ(fenced_below_, last.id().value() + 1);
}

TEST_F(RepeatsTest, ARepeatThatFailsIsReportedOnceAndTheOthersAreMade) {
  StartWithServer(1);
  const RemoteValue first = Update(), second = Update(), third = Update();
  for (const RemoteValue& value : {first, second, third}) FinishRunOf(value);
  MU_ASSERT_OK(runtime_->Join());
  ReplaceServer();
  FinishRunOf(first);
  RunOf(second.id()).call->Finish(testing::UsersError("log of -1"));
  EXPECT_THAT(runtime_->Join(), StatusIs(absl::StatusCode::kInvalidArgument, "log of -1"));
  // The third is part of what the user was told is done: with the first, from the beginning.
  FinishRunOf(first);
  FinishRunOf(third);
  MU_EXPECT_OK(runtime_->Join());
  {
    MutexLock lock(&mutex_);
    EXPECT_THAT(restored_, ElementsAre("", ""));
  }
  const RemoteValue next = Update();
  FinishRunOf(next);
  MU_EXPECT_OK(runtime_->Join());
  MU_EXPECT_OK(next.Fetch());
  MU_EXPECT_OK(second.Fetch());  // what was delivered stays
  EXPECT_EQ(runtime_->Stats().functions, 4u);
}

TEST_F(RepeatsTest, ANewFunctionThatFailsMeanwhileIsReportedOnceAndTheRepeatsAreMade) {
  StartWithServer(3);
  // The new one is of the same turn, or it would wait for the repeats.
  const RemoteValue first = Update(), second = Update(), bad = Update(6);
  const auto interrupted = RunOf(bad.id());
  for (const RemoteValue& value : {first, second}) {
    FinishRunOf(value);
    MU_ASSERT_OK(value.Fetch());
  }
  ReplaceServer();
  const auto first_repeat = RunOf(first.id());
  const auto second_repeat = RunOf(second.id());
  const RemoteValue queued = Update(6);
  RunOf(bad.id()).call->Finish(testing::UsersError("log of -1"));
  EXPECT_THAT(runtime_->Join(), StatusIs(absl::StatusCode::kInvalidArgument, "log of -1"));
  EXPECT_THAT(bad.Fetch(), HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(queued.Fetch(), HasCode(absl::StatusCode::kCancelled));
  PlayedWorker::Finish(first_repeat);  // too late to count: the state has gone back once more
  FinishRunOf(first);
  FinishRunOf(second);
  MU_EXPECT_OK(runtime_->Join());
  const RemoteValue next = Update();
  FinishRunOf(next);
  MU_EXPECT_OK(runtime_->Join());
  MU_EXPECT_OK(next.Fetch());
  EXPECT_EQ(runtime_->Stats().functions, 3u);
  EXPECT_EQ(runtime_->Stats().steps, 3u) << "each result is delivered once";
}

TEST_F(RepeatsTest, ASecondLossOfTheServerEndsNothing) {
  StartWithServer(1);
  const RemoteValue first = Update(), second = Update();
  for (const RemoteValue& value : {first, second}) FinishRunOf(value);
  MU_ASSERT_OK(runtime_->Join());
  ReplaceServer();
  FinishRunOf(first);
  const auto interrupted = RunOf(second.id());
  ReplaceServer();
  interrupted.call->Finish(testing::UsersError("of a run that does not count any more"));
  FinishRunOf(first);
  RunOf(second.id()).call->Finish(testing::UsersError("log of -1"));
  EXPECT_THAT(runtime_->Join(), StatusIs(absl::StatusCode::kInvalidArgument, "log of -1"));
  ReplaceServer();
  FinishRunOf(first);  // the one that failed is not tried again
  MU_EXPECT_OK(runtime_->Join());
}

// Rounds of repeats need not be those in which the functions ran first: the last one may be small.
TEST_F(RepeatsTest, WhoeverLoadsOtherValuesWaitsForNoFullRound) {
  RepeatInRounds();
  MU_EXPECT_OK(runtime_->WaitForRepeats());
  EXPECT_EQ(runtime_->Stats().rounds.small, 2u);
}

TEST_F(RepeatsTest, WhoeverStartsAnEpochWaitsForNoFullRound) {
  RepeatInRounds();
  MU_EXPECT_OK(runtime_->StartEpoch(/*dataset=*/0, 0, nullptr)) << "what these functions have";
  EXPECT_EQ(runtime_->Stats().rounds.small, 2u);
}

TEST_F(RepeatsTest, WhoeverChangesTheRoundsWaitsForNoFullRound) {
  RepeatInRounds();
  MU_EXPECT_OK(runtime_->SetRounds({.replicas = 3}));
  EXPECT_EQ(runtime_->Stats().rounds.small, 2u);
  EXPECT_EQ(runtime_->rounds().replicas, 3u);
}

TEST_F(RepeatsTest, WhoeverReadsWaitsForNoFullRound) {
  RepeatInRounds();
  MU_EXPECT_OK(runtime_->EnsureWhole().status());
  EXPECT_EQ(runtime_->Stats().rounds.small, 2u);
}

TEST_F(RepeatsTest, AFunctionThatOnlyReadsWaitsForNoFullRound) {
  RepeatInRounds();
  const RemoteValue read = runtime_->Schedule(
      {.fingerprint = Fingerprint(5), .steps = 1, .needs_version = 1, .trains = false}, {"x"});
  FinishRunOf(read);
  MU_EXPECT_OK(read.Fetch());
  EXPECT_EQ(runtime_->Stats().rounds.small, 2u);
}

TEST_F(RepeatsTest, ARecoveryIsInTheTrace) {
  telemetry_.SetTracing(true);
  StartWithServer(1);
  const RemoteValue value = Update();
  FinishRunOf(value);
  MU_ASSERT_OK(runtime_->Join());
  ReplaceServer();
  FinishRunOf(value);
  MU_ASSERT_OK(runtime_->Join());
  runtime_.reset();
  pb::TelemetryRequest request;
  request.set_drain_spans(true);
  std::map<std::string, pb::SpanProto> spans;
  size_t runs = 0;
  const pb::TelemetryReply reply = telemetry_.ToReply(request);
  for (const pb::SpanProto& span : reply.spans()) {
    spans[span.name()] = span;
    runs += span.name() == "step on worker 0" ? 1 : 0;
  }
  ASSERT_TRUE(spans.contains("recovery") && spans.contains("restore"));
  EXPECT_EQ(spans["restore"].detail(), "generation 2, initial values");
  EXPECT_GE(spans["restore"].start_ns(), spans["recovery"].start_ns());
  EXPECT_GE(spans["recovery"].duration_ns(), spans["restore"].duration_ns());
  EXPECT_EQ(runs, 2u) << "the repeat is there as well";
}

}  // namespace
}  // namespace mu
