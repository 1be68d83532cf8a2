#if MUSTER_WITH_GRPC
#include <gmock/gmock.h>

#include <vector>

#include "common/rpc/grpc_server.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST(GrpcServer, RefusesMoreOpenCallsThanItsLimitAndGoesOn) {
  const auto transport = NewGrpcTransport();
  Mutex mutex;
  CondVar changed;
  std::vector<std::shared_ptr<ServerCall>> held;
  MethodTable methods = EchoMethods();
  methods.AddUnary("/test/Hold", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer) {
                     MutexLock lock(&mutex);
                     held.push_back(std::move(call));
                     changed.SignalAll();
                   });
  MU_ASSERT_OK_AND_ASSIGN(const auto server, transport->Listen("127.0.0.1:0", std::move(methods)));
  const auto channel = transport->Connect(server->address(), pb::ROLE_WORKER);
  MU_ASSERT_OK(CallText(*channel, "/test/Echo", "there").status());

  constexpr size_t kMost = GrpcServer::kMostOpenCalls;
  size_t ended = 0;
  for (size_t i = 0; i < kMost; ++i) {
    channel->Unary("/test/Hold", Buffer(), {}, [&](const absl::Status& status, const Buffer&) {
      MU_EXPECT_OK(status);
      MutexLock lock(&mutex);
      ++ended;
      changed.SignalAll();
    });
  }
  {
    MutexLock lock(&mutex);
    while (held.size() < kMost) changed.Wait(&mutex);
  }
  EXPECT_THAT(CallText(*channel, "/test/Echo", "one too many").status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("calls open")));

  std::vector<std::shared_ptr<ServerCall>> calls;
  {
    MutexLock lock(&mutex);
    calls.swap(held);
  }
  for (const auto& call : calls) call->Finish(absl::OkStatus());
  {
    MutexLock lock(&mutex);
    while (ended < kMost) changed.Wait(&mutex);
  }
  // The server hears of the end of a call a little after its caller.
  absl::StatusOr<std::string> again = absl::UnavailableError("");
  while (absl::IsUnavailable(again.status())) again = CallText(*channel, "/test/Echo", "again");
  MU_ASSERT_OK(again.status());
  EXPECT_EQ(*again, "again");
}

}  // namespace
}  // namespace mu
#endif
