// A server belongs to the coordinator that it registers with, also when another one's requests are
// quicker than the answer to its registration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "common/client/ps_admin.h"
#include "common/client/ps_client.h"
#include "common/rpc/typed.h"
#include "psserver/node.h"
#include "tests/psserver/model.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;

constexpr uint64_t kJob = 5, kForeign = 6;

// A coordinator that answers a registration when it is told to.
class SlowCoordinator {
 public:
  explicit SlowCoordinator(Transport* transport) {
    MethodTable methods;
    methods.AddUnary("/muster.Coordinator/Register", RunOn::kOwnThread,
                     TypedHandler<pb::RegisterRequest>([this](const pb::RegisterRequest&) {
                       asked_.Notify();
                       answer_.Wait();
                       pb::RegisterReply reply;
                       reply.set_job(kJob);
                       reply.set_epoch(1);
                       reply.set_heartbeat_ms(1000);
                       return absl::StatusOr<pb::RegisterReply>(reply);
                     }));
    methods.AddUnary("/muster.Coordinator/Heartbeat", RunOn::kTransportThread,
                     TypedHandler<pb::HeartbeatRequest>([](const pb::HeartbeatRequest&) {
                       return absl::StatusOr<pb::HeartbeatReply>(pb::HeartbeatReply());
                     }));
    rpc_ = transport->Listen("memory:0", std::move(methods)).value();
  }
  std::string address() const { return rpc_->address(); }
  void WaitUntilAsked() { asked_.Wait(); }
  void Answer() { answer_.Notify(); }

 private:
  Notification asked_, answer_;
  std::unique_ptr<RpcServer> rpc_;
};

absl::Status Configure(Channel& channel, uint64_t job) {
  pb::ConfigurePsRequest request;
  request.mutable_context()->set_job(job);
  request.mutable_context()->set_epoch(1);
  *request.mutable_routing() = testing::SmallModel(1);
  return Call<pb::ConfigurePsReply>(channel, "/muster.PsServer/Configure", request).status();
}

TEST(PsRegistrationTest, AForeignCoordinatorMayBeFirst) {
  const std::unique_ptr<Transport> transport = NewMemoryTransport();
  SlowCoordinator coordinator(transport.get());
  PsNodeOptions options;
  options.coordinator = coordinator.address();
  options.listen = "memory:0";
  MU_ASSERT_OK_AND_ASSIGN(const auto node, PsNode::Listen(transport.get(), options));
  std::thread registering([&] { MU_EXPECT_OK(node->Register()); });
  coordinator.WaitUntilAsked();

  const auto channel = transport->Connect(node->address(), pb::ROLE_PSSERVER);
  const absl::Status early = Configure(*channel, kForeign);
  EXPECT_THAT(early, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(KindOf(early), pb::ERROR_MACHINE);
  pb::FenceRequest fence;
  fence.mutable_context()->set_job(kForeign);
  EXPECT_THAT(Call<pb::FenceReply>(*channel, "/muster.PsServer/Fence", fence),
              HasCode(absl::StatusCode::kUnavailable));

  // Its own coordinator knows it before it hears of that, and tries until it does.
  pb::RoutingProto routing = testing::SmallModel(1);
  routing.mutable_servers(0)->set_address(node->address());
  PsClient client(
      [&](const std::string& address) { return transport->Connect(address, pb::ROLE_PSSERVER); });
  MU_ASSERT_OK(client.SetRouting(routing));
  PsAdmin admin(&client);
  pb::RequestContext context;
  context.set_job(kJob);
  context.set_epoch(1);
  std::thread configuring([&] { MU_EXPECT_OK(admin.Configure(context)); });
  coordinator.Answer();
  registering.join();
  configuring.join();
  EXPECT_EQ(KindOf(Configure(*channel, kForeign)), pb::ERROR_OTHER_JOB);
  MU_EXPECT_OK(admin.Stats(context));
}

}  // namespace
}  // namespace mu
