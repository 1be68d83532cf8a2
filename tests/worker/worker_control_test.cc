#include "tests/testing/raw_stream.h"
#include "tests/worker/test_functions.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;
using testing::ValueOf;

constexpr uint32_t kForever = 100'000'000;

pb::ErrorKind DetailKind(const absl::Status& status) {
  return DetailOf(status).value_or(pb::ErrorDetail()).kind();
}

class WorkerControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    AddCounters(&cluster_);
    MU_ASSERT_OK(cluster_.Configure());
    MU_ASSERT_OK(cluster_.InstallFunction(function_));
  }
  testing::WorkerCluster cluster_;
  const muster::FunctionProto function_ = testing::CountSteps();
};

TEST_F(WorkerControlTest, CancelledRunsEndAndNothingArrivesLater) {
  auto running = cluster_.Start(cluster_.MakeRun(1, function_, kForever));
  running->WaitForResults(3);
  auto waiting = cluster_.Start(cluster_.MakeRun(2, function_, 1));
  MU_ASSERT_OK(cluster_.CancelRuns(3));
  const int64_t steps = Steps(cluster_);
  EXPECT_THAT(running->Wait(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_THAT(waiting->Wait(), HasCode(absl::StatusCode::kCancelled));
  EXPECT_GE(steps, 3);
  EXPECT_LE(static_cast<int64_t>(running->steps().size()), steps);
  EXPECT_THAT(cluster_.Start(cluster_.MakeRun(2, function_, 1))->Wait(),
              HasCode(absl::StatusCode::kCancelled))
      << "a cancelled function that arrives late";
  MU_EXPECT_OK(cluster_.Start(cluster_.MakeRun(3, function_, 1))->Wait());
  EXPECT_EQ(Steps(cluster_), steps + 1);
}

// It was sent before the servers went back to a checkpoint, and means the runs of that time: those
// of now are repeats of them, with the same ids.
TEST(WorkerControl, ACancelOfBeforeARollBackEndsNoRepeat) {
  testing::WorkerCluster cluster;
  AddCounters(&cluster);
  cluster.routing().set_generation(5);
  cluster.context().set_generation(5);
  MU_ASSERT_OK(cluster.Configure());
  const muster::FunctionProto function = testing::CountSteps();
  MU_ASSERT_OK(cluster.InstallFunction(function));
  auto repeat = cluster.Start(cluster.MakeRun(1, function, kForever));
  repeat->WaitForResults(1);
  cluster.context().set_generation(4);
  MU_EXPECT_OK(cluster.CancelRuns(3));
  repeat->WaitForResults(repeat->steps().size() + 50);
  cluster.context().set_generation(5);
  MU_EXPECT_OK(cluster.CancelRuns(3));
  EXPECT_THAT(repeat->Wait(), HasCode(absl::StatusCode::kCancelled));
}

TEST_F(WorkerControlTest, CancelAbortsAPullThatIsNotAnswered) {
  cluster_.faults().Add({.method = "Pull", .fault = Fault::kLoseRequest});
  auto run = cluster_.Start(cluster_.MakeRun(1, function_, 1));
  while (cluster_.faults().hits() == 0) std::this_thread::yield();
  MU_ASSERT_OK(cluster_.CancelRuns(2));
  EXPECT_THAT(run->Wait(), HasCode(absl::StatusCode::kCancelled));
}

TEST_F(WorkerControlTest, ARunWhoseCallerIsGoneStops) {
  auto gone = cluster_.Start(cluster_.MakeRun(1, function_, kForever));
  gone->WaitForResults(1);
  auto next = cluster_.Start(cluster_.MakeRun(2, function_, 1));
  gone->Cancel();
  MU_EXPECT_OK(next->Wait());
}

TEST_F(WorkerControlTest, WhatIsNotInstalledIsAskedFor) {
  const absl::Status unknown =
      cluster_.Start(cluster_.MakeRun(1, testing::SumBatches(), 1))->Wait();
  EXPECT_THAT(unknown, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(DetailKind(unknown), pb::ERROR_NOT_INSTALLED);
  MU_ASSERT_OK(cluster_.InstallFunction(testing::SumBatches()));
  const absl::Status no_data =
      cluster_.Start(cluster_.MakeRun(1, testing::SumBatches(), 1))->Wait();
  EXPECT_THAT(no_data, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("dataset 1")));
  EXPECT_EQ(DetailKind(no_data), pb::ERROR_NOT_INSTALLED);
  muster::ScanFileRequest scan;
  scan.set_dataset(9);
  const auto scanned = cluster_.CallWorker<muster::ScanFileReply>("ScanFile", scan);
  EXPECT_EQ(DetailKind(scanned.status()), pb::ERROR_NOT_INSTALLED);
}

TEST_F(WorkerControlTest, MalformedGraphsAreRefusedAndHarmNothing) {
  muster::FunctionProto cyclic = function_;
  cyclic.set_name("cyclic");
  muster::FunctionProto unknown_op = function_;
  unknown_op.mutable_nodes(0)->set_op("frobnicate");
  muster::FunctionProto unknown_variable = function_;
  for (auto& node : *unknown_variable.mutable_nodes()) {
    if (node.attrs().contains("variable")) (*node.mutable_attrs())["id"].set_i(99);
    if (node.inputs_size() > 0) cyclic.mutable_nodes(0)->add_inputs()->set_node(2);
  }
  for (const auto& bad : {cyclic, unknown_op, unknown_variable}) {
    EXPECT_THAT(cluster_.InstallFunction(bad), HasCode(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(KindOf(cluster_.InstallFunction(bad)), pb::ERROR_USER);
    EXPECT_EQ(DetailKind(cluster_.Start(cluster_.MakeRun(1, bad, 1))->Wait()),
              pb::ERROR_NOT_INSTALLED);
  }
  muster::InstallFunctionRequest lie;
  *lie.mutable_function() = function_;
  lie.set_fingerprint(1);
  EXPECT_THAT(cluster_.CallWorker<muster::InstallFunctionReply>("InstallFunction", lie),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fingerprint")));
  MU_EXPECT_OK(cluster_.InstallFunction(function_)) << "again: nothing happens";
  MU_EXPECT_OK(cluster_.Start(cluster_.MakeRun(1, function_, 1))->Wait());
}

TEST_F(WorkerControlTest, DatasetsThatMakeNoSenseAreRefused) {
  muster::InstallDatasetRequest request;
  request.mutable_dataset()->set_id(1);
  EXPECT_THAT(cluster_.CallWorker<muster::InstallDatasetReply>("InstallDataset", request),
              HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(WorkerControlTest, GarbageIsRefused) {
  const Buffer garbage(std::string("\xff\xff\xff\xff garbage"));
  for (const char* method :
       {"Configure", "InstallDataset", "ScanFile", "InstallFunction", "CancelRuns"}) {
    Notification done;
    absl::Status status;
    cluster_.channel().Unary(absl::StrCat("/muster.Worker/", method), garbage, {},
                             [&](absl::Status s, Buffer) {
                               status = std::move(s);
                               done.Notify();
                             });
    done.Wait();
    EXPECT_THAT(status, HasCode(absl::StatusCode::kInvalidArgument)) << method;
  }
  pb::FeedRequest hello;
  *hello.mutable_hello()->mutable_context() = cluster_.context();
  hello.mutable_hello()->set_stream(1);
  hello.mutable_hello()->set_connection(1);
  for (const std::deque<Buffer>& said : {std::deque<Buffer>{garbage},
                                         {testing::Serialized(pb::FeedRequest())},
                                         {testing::Serialized(hello), garbage}}) {
    EXPECT_THAT(testing::EndOfStream(cluster_.channel(), "/muster.Worker/Feed", said),
                HasCode(absl::StatusCode::kInvalidArgument));
  }
  MU_EXPECT_OK(cluster_.Start(cluster_.MakeRun(1, function_, 1))->Wait());
}

TEST_F(WorkerControlTest, AnotherJobIsRefused) {
  auto request = cluster_.MakeRun(1, function_, 1);
  request.mutable_context()->set_job(8);
  EXPECT_EQ(DetailKind(cluster_.Start(request)->Wait()), pb::ERROR_OTHER_JOB);
  EXPECT_EQ(DetailKind(cluster_.worker().Registered(8, 1, 0)), pb::ERROR_OTHER_JOB);
}

TEST_F(WorkerControlTest, ANewerCoordinatorTakesOver) {
  auto old = cluster_.Start(cluster_.MakeRun(1, function_, kForever));
  old->WaitForResults(1);
  const auto old_request = cluster_.MakeRun(2, function_, 1);
  cluster_.context().set_epoch(2);
  EXPECT_EQ(DetailKind(cluster_.Start(cluster_.MakeRun(1, function_, 1))->Wait()),
            pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(DetailKind(old->Wait()), pb::ERROR_STALE);
  EXPECT_EQ(DetailKind(cluster_.Start(old_request)->Wait()), pb::ERROR_STALE);
  MU_ASSERT_OK(cluster_.Configure());
  MU_ASSERT_OK(cluster_.InstallFunction(function_));
  MU_EXPECT_OK(cluster_.Start(cluster_.MakeRun(100, function_, 1))->Wait());
}

TEST_F(WorkerControlTest, TheGenerationMustBeTheRoutings) {
  auto request = cluster_.MakeRun(1, function_, 1);
  request.mutable_context()->set_generation(5);
  EXPECT_EQ(DetailKind(cluster_.Start(request)->Wait()), pb::ERROR_NOT_INSTALLED);
  cluster_.routing().set_generation(6);
  cluster_.routing().set_version(cluster_.routing().version() + 1);
  MU_ASSERT_OK(cluster_.ConfigureWorker());
  EXPECT_EQ(DetailKind(cluster_.Start(request)->Wait()), pb::ERROR_STALE);
}

TEST_F(WorkerControlTest, DrainHandsBackWhatIsLeft) {
  auto running = cluster_.Start(cluster_.MakeRun(1, function_, kForever));
  running->WaitForResults(2);
  auto waiting = cluster_.Start(cluster_.MakeRun(2, function_, 1));
  cluster_.worker().Drain(absl::InfiniteDuration());
  for (auto& run : {running, waiting, cluster_.Start(cluster_.MakeRun(3, function_, 1))}) {
    MU_EXPECT_OK(run->Wait());
    EXPECT_TRUE(run->handed_back());
  }
  EXPECT_EQ(static_cast<int64_t>(running->steps().size()), Steps(cluster_))
      << "every step that was applied has its result";
}

// A step that would have taken longer has not been done, unless its push was under way.
TEST(WorkerControl, DrainWithoutPatienceCountsNoStepThatWasNotApplied) {
  const muster::FunctionProto function = testing::CountSteps();
  for (int i = 0; i < 100; ++i) {
    testing::WorkerCluster cluster;
    AddCounters(&cluster);
    MU_ASSERT_OK(cluster.Configure());
    MU_ASSERT_OK(cluster.InstallFunction(function));
    auto running = cluster.Start(cluster.MakeRun(1, function, kForever));
    running->WaitForResults(1);
    cluster.worker().Drain(absl::ZeroDuration());
    MU_EXPECT_OK(running->Wait());
    ASSERT_LE(static_cast<int64_t>(running->steps().size()), Steps(cluster));
  }
}

TEST_F(WorkerControlTest, Telemetry) {
  MU_ASSERT_OK(cluster_.Start(cluster_.MakeRun(1, function_, 5))->Wait());
  MU_ASSERT_OK_AND_ASSIGN(const auto reply, Call<muster::TelemetryReply>(
                                                cluster_.channel(), "/muster.Worker/GetTelemetry",
                                                muster::TelemetryRequest()));
  uint64_t steps = 0;
  for (const auto& timer : reply.timers()) {
    if (timer.name() == "worker.step") steps = timer.count();
  }
  EXPECT_GE(steps, 5u);
}

}  // namespace
}  // namespace mu
