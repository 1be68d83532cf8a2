#if MUSTER_WITH_GRPC
#include <gmock/gmock.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/obs/telemetry.h"
#include "common/rpc/grpc_server.h"
#include "common/rpc/health.h"
#include "tests/common/rpc/transport_fixture.h"
#include "tests/testing/slow_proxy.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

constexpr size_t kMost = GrpcServer::kMostOpenCalls;
constexpr size_t kMostOfHost = GrpcServer::kMostOpenCallsOfHost;

int64_t Refused(const std::string& reason) {
  return Telemetry::Process().counter("rpc.server.refused", "", {{"reason", reason}})->value();
}

// A server with a method that holds its calls, and channels to it from several hosts.
class OpenCallsTest : public ::testing::Test {
 protected:
  OpenCallsTest() : transport_(NewGrpcTransport()) {
    MethodTable methods = EchoMethods();
    methods.AddUnary("/test/Hold", RunOn::kTransportThread,
                     [this](std::shared_ptr<ServerCall> call, Buffer) {
                       MutexLock lock(&mutex_);
                       held_.push_back(std::move(call));
                       changed_.SignalAll();
                     });
    AddHealthMethod(&methods, [] { return Health{.ready = true}; });
    auto server = transport_->Listen("127.0.0.1:0", std::move(methods));
    MU_EXPECT_OK(server.status());
    server_ = *std::move(server);
  }

  // Calls from 127.0.0.`host`.
  std::shared_ptr<Channel> ChannelFrom(int host) {
    auto proxy = testing::SlowProxy::Start({.target = server_->address(),
                                            .source = absl::StrCat("127.0.0.", host),
                                            .delay = absl::ZeroDuration(),
                                            .stall_probability = 0});
    MU_EXPECT_OK(proxy.status());
    proxies_.push_back(*std::move(proxy));
    return transport_->Connect(proxies_.back()->address(), pb::ROLE_WORKER);
  }

  // Returns when the server has them all.
  void Hold(Channel& channel, size_t calls) {
    for (size_t i = 0; i < calls; ++i) {
      channel.Unary("/test/Hold", Buffer(), {}, [this](const absl::Status& status, const Buffer&) {
        MU_EXPECT_OK(status);
        MutexLock lock(&mutex_);
        ++ended_;
        changed_.SignalAll();
      });
    }
    begun_ += calls;
    MutexLock lock(&mutex_);
    while (held_.size() < begun_) changed_.Wait(&mutex_);
  }

  void LetGo() {
    std::vector<std::shared_ptr<ServerCall>> calls;
    {
      MutexLock lock(&mutex_);
      calls.swap(held_);
    }
    for (const auto& call : calls) call->Finish(absl::OkStatus());
    MutexLock lock(&mutex_);
    while (ended_ < begun_) changed_.Wait(&mutex_);
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<ServerCall>> held_ ABSL_GUARDED_BY(mutex_);
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t begun_ = 0;
  const std::unique_ptr<Transport> transport_;
  std::unique_ptr<RpcServer> server_;
  std::vector<std::unique_ptr<testing::SlowProxy>> proxies_;
};

TEST_F(OpenCallsTest, OneHostDoesNotKeepOthersOut) {
  const auto greedy = ChannelFrom(2), another = ChannelFrom(2), modest = ChannelFrom(3);
  Hold(*greedy, kMostOfHost);
  const int64_t refused = Refused("open_calls_of_host");
  for (const auto& channel : {greedy, another}) {
    EXPECT_THAT(CallText(*channel, "/test/Echo", "one too many").status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("calls open of callers at ")));
  }
  EXPECT_EQ(Refused("open_calls_of_host"), refused + 2);
  MU_EXPECT_OK(CheckHealth(*greedy, kReady, absl::Seconds(20)));
  MU_ASSERT_OK_AND_ASSIGN(const std::string served, CallText(*modest, "/test/Echo", "modest"));
  EXPECT_EQ(served, "modest");
  LetGo();
}

TEST_F(OpenCallsTest, MoreThanTheLimitAreRefusedAndTheServerGoesOn) {
  const auto one = ChannelFrom(2), two = ChannelFrom(3), channel = ChannelFrom(4);
  Hold(*one, kMostOfHost);
  Hold(*two, kMost - kMostOfHost);
  const int64_t refused = Refused("open_calls");
  EXPECT_THAT(CallText(*channel, "/test/Echo", "one too many").status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("calls open and takes no more")));
  EXPECT_EQ(Refused("open_calls"), refused + 1);
  LetGo();
  // The server hears of the end of a call a little after its caller.
  absl::StatusOr<std::string> again = absl::UnavailableError("");
  while (absl::IsUnavailable(again.status())) again = CallText(*channel, "/test/Echo", "again");
  MU_ASSERT_OK(again.status());
  EXPECT_EQ(*again, "again");
}

TEST_F(OpenCallsTest, AMethodThatNobodyHasIsCounted) {
  const int64_t refused = Refused("method");
  EXPECT_THAT(CallText(*ChannelFrom(2), "/test/None", "").status(),
              HasCode(absl::StatusCode::kUnimplemented));
  EXPECT_EQ(Refused("method"), refused + 1);
}

}  // namespace
}  // namespace mu
#endif
