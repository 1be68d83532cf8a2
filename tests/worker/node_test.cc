// A worker as a member: whom it listens to, and how it ends. Whole clusters of nodes are in
// tests/conformance.
#include "worker/node.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "common/env/file.h"
#include "common/rpc/typed.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;

// A coordinator that takes everybody, in the epoch that the test says.
class WorkerNodeTest : public ::testing::Test {
 protected:
  WorkerNodeTest() : directory_(TempDirectory::Create("muster-node").value()) {
    MethodTable methods;
    methods.AddUnary("/muster.Coordinator/Register", RunOn::kOwnThread,
                     TypedHandler<pb::RegisterRequest>(
                         [this](const pb::RegisterRequest& request) { return Register(request); }));
    methods.AddUnary("/muster.Coordinator/Heartbeat", RunOn::kOwnThread,
                     TypedHandler<pb::HeartbeatRequest>(
                         [](const pb::HeartbeatRequest&) -> absl::StatusOr<pb::HeartbeatReply> {
                           return pb::HeartbeatReply();
                         }));
    methods.AddUnary("/muster.Coordinator/Leave", RunOn::kOwnThread,
                     TypedHandler<pb::LeaveRequest>(
                         [this](const pb::LeaveRequest& r) -> absl::StatusOr<pb::LeaveReply> {
                           MutexLock lock(&mutex_);
                           left_ = r.reason();
                           return pb::LeaveReply();
                         }));
    rpc_ = network_->Listen("memory:0", std::move(methods)).value();
  }
  ~WorkerNodeTest() override { rpc_->Shutdown(); }

  absl::StatusOr<std::unique_ptr<WorkerNode>> Listen(const std::string& coordinator,
                                                     const std::string& listen = "memory:0") {
    WorkerNodeOptions options;
    options.coordinator = coordinator;
    options.listen = listen;
    options.index = 3;
    options.worker.cache_dir = directory_.path();
    options.worker.telemetry = &telemetry_;
    return WorkerNode::Listen(network_.get(), std::move(options));
  }
  absl::Status Configure(const std::string& worker, uint64_t job) {
    pb::ConfigureWorkerRequest request;
    request.mutable_context()->set_job(job);
    request.mutable_context()->set_epoch(1);
    return Call<pb::ConfigureWorkerReply>(*network_->Connect(worker, pb::ROLE_PSSERVER),
                                          "/muster.Worker/Configure", request)
        .status();
  }
  std::string left() {
    MutexLock lock(&mutex_);
    return left_;
  }
  pb::RegisterRequest request() {
    MutexLock lock(&mutex_);
    return request_;
  }

  Telemetry telemetry_;
  TempDirectory directory_;
  const std::unique_ptr<Transport> network_ = NewMemoryTransport();
  std::unique_ptr<RpcServer> rpc_;

 private:
  absl::StatusOr<pb::RegisterReply> Register(const pb::RegisterRequest& request) {
    MutexLock lock(&mutex_);
    request_ = request;
    pb::RegisterReply reply;
    reply.set_job(7);
    reply.set_epoch(1);
    reply.set_index(3);
    reply.set_heartbeat_ms(10);
    return reply;
  }

  Mutex mutex_;
  pb::RegisterRequest request_ ABSL_GUARDED_BY(mutex_);
  std::string left_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(WorkerNodeTest, RegistersServesAndLeaves) {
  MU_ASSERT_OK_AND_ASSIGN(const auto node, Listen(rpc_->address()));
  MU_ASSERT_OK(node->Register());
  EXPECT_EQ(request().role(), pb::ROLE_WORKER);
  EXPECT_EQ(request().address(), node->address());
  EXPECT_EQ(request().index(), 3);
  MU_EXPECT_OK(Configure(node->address(), 7));
  EXPECT_EQ(KindOf(Configure(node->address(), 8)), pb::ERROR_OTHER_JOB);
  node->Drain(absl::Seconds(1));
  MU_EXPECT_OK(node->Leave("asked to stop", absl::Seconds(5)));
  EXPECT_EQ(left(), "asked to stop");
  EXPECT_THAT(Configure(node->address(), 7), HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(WorkerNodeTest, ARegistrationThatNobodyAnswersCanBeGivenUp) {
  MU_ASSERT_OK_AND_ASSIGN(const auto node, Listen("memory:nobody"));
  std::thread stop([&] { node->RequestStop(); });
  EXPECT_THAT(node->Register(), HasCode(absl::StatusCode::kCancelled));
  stop.join();
}

TEST_F(WorkerNodeTest, AnAddressThatIsInUseIsAnError) {
  EXPECT_THAT(Listen(rpc_->address(), rpc_->address()), HasCode(absl::StatusCode::kUnavailable));
}

TEST(StuckWatcherTest, SaysOnceWhatStandsStill) {
  Notification stuck;
  std::string doing;
  StuckWatcher watcher(
      [] {
        return StepWatch::Place{"step 7 is reading data", 1};
      },
      absl::Milliseconds(20),
      [&](const std::string& what) {
        doing = what;
        stuck.Notify();
      });
  stuck.Wait();
  EXPECT_EQ(doing, "step 7 is reading data");
}

}  // namespace
}  // namespace mu
