#include "common/rpc/health.h"

#include <gmock/gmock.h>

#include <atomic>

#include "common/rpc/typed.h"
#include "proto/health.pb.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(Health, TellsReadyAndLiveApart) {
  std::atomic<bool> ready = false, live = true;
  const auto transport = NewMemoryTransport();
  MethodTable methods;
  AddHealthMethod(&methods, [&] { return Health{ready, live}; });
  MU_ASSERT_OK_AND_ASSIGN(auto server, transport->Listen("memory:0", std::move(methods)));
  const auto channel = transport->Connect(server->address(), pb::ROLE_WORKER);
  const auto check = [&](const char* service) {
    return CheckHealth(*channel, service, absl::Seconds(20));
  };
  EXPECT_THAT(check(kReady), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("not ready")));
  MU_EXPECT_OK(check(kLive));
  ready = true;
  MU_EXPECT_OK(check(kReady));
  live = false;
  EXPECT_THAT(check(kLive), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("stuck")));
  EXPECT_THAT(check("other"), HasCode(absl::StatusCode::kNotFound));
}

// Kubernetes and others send grpc.health.v1's messages: field 1 of each, 1 for SERVING.
TEST(Health, SpeaksTheStandardsBytes) {
  pb::HealthRequest request;
  request.set_service("live");
  EXPECT_EQ(request.SerializeAsString(), "\n\x04live");
  pb::HealthReply reply;
  reply.set_status(pb::HealthReply::SERVING);
  EXPECT_EQ(reply.SerializeAsString(), "\b\x01");
}

}  // namespace
}  // namespace mu
