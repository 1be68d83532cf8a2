// Servers, channels and transports that go away, and come back, with calls under way.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/common/rpc/transport_fixture.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::testing::AnyOf;

// A server whose method never answers by itself.
struct HangingServer {
  MethodTable Methods() {
    MethodTable methods = EchoMethods();
    methods.AddUnary("/test/Hang", RunOn::kTransportThread,
                     [this](std::shared_ptr<ServerCall> call, Buffer) {
                       MutexLock lock(&mutex);
                       kept.push_back(call);
                       started.Notify();
                     });
    return methods;
  }
  Mutex mutex;
  std::vector<std::shared_ptr<ServerCall>> kept ABSL_GUARDED_BY(mutex);
  Notification started;
};

TEST_P(TransportTest, ServerShutdownEndsCalls) {
  HangingServer hanging;
  auto server = Listen(hanging.Methods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  UnaryResult result;
  channel->Unary("/test/Hang", Text("x"), {}, result.Callback());
  hanging.started.Wait();
  std::atomic<int> cancels{0};
  {
    MutexLock lock(&hanging.mutex);
    hanging.kept[0]->OnCancel([&] { ++cancels; });
  }
  server->Shutdown();
  EXPECT_EQ(cancels, 1);
  result.ended.Wait();
  EXPECT_THAT(result.status, AnyOf(HasCode(absl::StatusCode::kUnavailable),
                                   HasCode(absl::StatusCode::kCancelled)));
  // The handler may still hold its call, and use it.
  MutexLock lock(&hanging.mutex);
  EXPECT_TRUE(hanging.kept[0]->IsCancelled());
  hanging.kept[0]->Finish(absl::OkStatus(), Text("late"));
  server.reset();
  hanging.kept[0]->Send(Text("later"));
  hanging.kept.clear();
}

TEST_P(TransportTest, ShutdownWaitsForHandlers) {
  Notification started, cancelled;
  std::atomic<bool> left{false};
  MethodTable methods;
  methods.AddUnary("/test/Block", RunOn::kOwnThread, [&](std::shared_ptr<ServerCall> call, Buffer) {
    call->OnCancel([&] { cancelled.Notify(); });
    started.Notify();
    cancelled.Wait();
    call->Finish(absl::CancelledError());
    left = true;
  });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  UnaryResult result;
  channel->Unary("/test/Block", Text("x"), {}, result.Callback());
  started.Wait();
  server->Shutdown();
  EXPECT_TRUE(left);
  result.ended.Wait();
  EXPECT_FALSE(result.status.ok());
}

TEST_P(TransportTest, NobodyListensIsUnavailable) {
  auto server = Listen(EchoMethods());
  const std::string address = server->address();
  server.reset();
  auto channel = transport_->Connect(address, pb::ROLE_PSSERVER);
  EXPECT_THAT(CallText(*channel, "/test/Echo", "x").status(),
              HasCode(absl::StatusCode::kUnavailable));
}

TEST_P(TransportTest, ChannelConnectsAgainAfterARestart) {
  auto server = Listen(EchoMethods());
  const std::string address = server->address();
  auto channel = transport_->Connect(address, pb::ROLE_PSSERVER);
  MU_ASSERT_OK(CallText(*channel, "/test/Echo", "x"));
  for (int restart = 0; restart < 3; ++restart) {
    server.reset();
    EXPECT_THAT(CallText(*channel, "/test/Echo", "x").status(),
                HasCode(absl::StatusCode::kUnavailable));
    server = Listen(EchoMethods(), address);
    ASSERT_NE(server, nullptr);
    // Within its back-off the channel says UNAVAILABLE.
    absl::StatusOr<std::string> reply;
    testing::WaitWhile([&] {
      reply = CallText(*channel, "/test/Echo", "again");
      return absl::IsUnavailable(reply.status());
    });
    EXPECT_THAT(reply, testing::IsOk());
  }
}

TEST_P(TransportTest, AddressInUseSaysSo) {
  auto server = Listen(EchoMethods());
  const auto second = transport_->Listen(server->address(), EchoMethods());
  EXPECT_THAT(second.status(),
              testing::StatusIs(absl::StatusCode::kUnavailable, ::testing::HasSubstr("in use")));
}

TEST_P(TransportTest, ChannelDestroyedCancelsItsCalls) {
  HangingServer hanging;
  auto server = Listen(hanging.Methods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  auto other = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  UnaryResult result, kept;
  channel->Unary("/test/Hang", Text("x"), {}, result.Callback());
  other->Unary("/test/Hang", Text("x"), {}, kept.Callback());
  hanging.started.Wait();
  channel.reset();
  result.ended.Wait();
  EXPECT_THAT(result.status, HasCode(absl::StatusCode::kCancelled));
  EXPECT_FALSE(kept.ended.HasBeenNotified());
  server->Shutdown();
  kept.ended.Wait();
  MutexLock lock(&hanging.mutex);
  hanging.kept.clear();
}

TEST_P(TransportTest, ChannelLetGoInItsOwnCallback) {
  auto server = Listen(EchoMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  Notification ended;
  Channel& raw = *channel;
  raw.Unary("/test/Echo", Text("x"), {},
            [&ended, channel = std::move(channel)](absl::Status, Buffer) mutable {
              channel.reset();
              ended.Notify();
            });
  ended.Wait();
}

TEST_P(TransportTest, TransportDestroyedEndsCallsAndWaits) {
  auto transport = NewTransport();
  HangingServer hanging;
  auto server = Listen(hanging.Methods());  // of another transport, where that matters
  auto own = transport->Listen("127.0.0.1:0", hanging.Methods());
  MU_ASSERT_OK(own);
  auto channel = transport->Connect((*own)->address(), pb::ROLE_PSSERVER);
  std::vector<UnaryResult> results(20);
  for (UnaryResult& result : results)
    channel->Unary("/test/Hang", Text("x"), {}, result.Callback());
  hanging.started.Wait();
  transport.reset();
  for (UnaryResult& result : results) {
    ASSERT_TRUE(result.ended.HasBeenNotified());
    EXPECT_FALSE(result.status.ok());
    EXPECT_EQ(result.calls, 1);
  }
  EXPECT_FALSE(CallText(*channel, "/test/Echo", "x").ok());
  MutexLock lock(&hanging.mutex);
  hanging.kept.clear();
}

TEST_P(TransportTest, EveryCallEndsOnceWhileServersComeAndGo) {
  std::atomic<int> started{0}, ended{0};
  std::atomic<bool> stop{false};
  auto server = Listen(EchoMethods(RunOn::kOwnThread));
  const std::string address = server->address();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      auto channel = transport_->Connect(address, pb::ROLE_PSSERVER);
      while (!stop) {
        ++started;
        UnaryResult result;
        channel->Unary("/test/Echo", Text("x"), {}, result.Callback());
        result.ended.Wait();
        ended += result.calls;
        if (!result.status.ok()) channel = transport_->Connect(address, pb::ROLE_PSSERVER);
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    const int before = ended;
    while (ended < before + 20) std::this_thread::yield();
    server.reset();
    server = Listen(EchoMethods(RunOn::kOwnThread), address);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(started, ended);
}

// A deadline may pass while its call is still being started.
TEST_P(TransportTest, ACallWhoseTimeIsUpAtOnceEndsOnce) {
  const auto server = Listen(EchoMethods());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
      for (int i = 0; i < 300; ++i) {
        UnaryResult result;
        channel->Unary("/test/Echo", Text("x"), {.timeout = absl::Nanoseconds(1)},
                       result.Callback());
        result.ended.Wait();
        EXPECT_EQ(result.calls, 1);
        if (result.status.ok()) continue;
        EXPECT_THAT(result.status, testing::HasCode(absl::StatusCode::kDeadlineExceeded));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace mu
