// Streams from the server, over every transport.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;

struct StreamResult {
  std::function<void(Buffer)> OnMessage() {
    return [this](Buffer message) {
      if (ended.HasBeenNotified()) ++late;
      messages.push_back(TextOf(message));
      first.Notify();
    };
  }
  std::function<void(absl::Status)> OnDone() {
    return [this](absl::Status status) {
      this->status = std::move(status);
      ended.Notify();
    };
  }
  Notification first;
  Notification ended;
  absl::Status status;
  std::vector<std::string> messages;
  int late = 0;
};

MethodTable CountMethods() {
  MethodTable methods;
  methods.AddServerStream("/test/Count", RunOn::kOwnThread,
                          [](std::shared_ptr<ServerCall> call, Buffer request) {
                            int count = 0;
                            if (!absl::SimpleAtoi(request.view(), &count))
                              return call->Finish(absl::InvalidArgumentError("no number"));
                            for (int i = 0; i < count; ++i) call->Send(Text(absl::StrCat(i)));
                            call->Finish(absl::OkStatus());
                          });
  return methods;
}

TEST_P(TransportTest, TenThousandMessagesInOrder) {
  auto server = Listen(CountMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  StreamResult result;
  channel->ServerStream("/test/Count", Text("10000"), {}, result.OnMessage(), result.OnDone());
  result.ended.Wait();
  MU_ASSERT_OK(result.status);
  ASSERT_EQ(result.messages.size(), 10000u);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(result.messages[i], absl::StrCat(i));
  EXPECT_EQ(result.late, 0);
}

TEST_P(TransportTest, StreamWithoutMessagesAndStreamThatFails) {
  auto server = Listen(CountMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  StreamResult none;
  channel->ServerStream("/test/Count", Text("0"), {}, none.OnMessage(), none.OnDone());
  none.ended.Wait();
  MU_EXPECT_OK(none.status);
  EXPECT_TRUE(none.messages.empty());
  StreamResult wrong;
  channel->ServerStream("/test/Count", Text("x"), {}, wrong.OnMessage(), wrong.OnDone());
  wrong.ended.Wait();
  EXPECT_THAT(wrong.status, StatusIs(absl::StatusCode::kInvalidArgument, "no number"));
  StreamResult unknown;
  channel->ServerStream("/test/Nothing", Text("x"), {}, unknown.OnMessage(), unknown.OnDone());
  unknown.ended.Wait();
  EXPECT_THAT(unknown.status, HasCode(absl::StatusCode::kUnimplemented));
}

TEST_P(TransportTest, MessagesBeforeAnErrorArrive) {
  MethodTable methods;
  methods.AddServerStream("/test/Some", RunOn::kTransportThread,
                          [](std::shared_ptr<ServerCall> call, Buffer) {
                            for (const char* text : {"a", "b", "c"}) call->Send(Text(text));
                            call->Finish(absl::DataLossError("the rest is lost"));
                          });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  StreamResult result;
  channel->ServerStream("/test/Some", Text(""), {}, result.OnMessage(), result.OnDone());
  result.ended.Wait();
  EXPECT_THAT(result.status, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(result.messages, ::testing::ElementsAre("a", "b", "c"));
}

TEST_P(TransportTest, SendsFromSeveralThreadsAllArrive) {
  MethodTable methods;
  methods.AddServerStream("/test/Many", RunOn::kOwnThread,
                          [](std::shared_ptr<ServerCall> call, Buffer) {
                            std::vector<std::thread> threads;
                            for (int t = 0; t < 4; ++t) {
                              threads.emplace_back([call] {
                                for (int i = 0; i < 250; ++i) call->Send(Text("m"));
                              });
                            }
                            for (std::thread& thread : threads) thread.join();
                            call->Finish(absl::OkStatus());
                          });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  StreamResult result;
  channel->ServerStream("/test/Many", Text(""), {}, result.OnMessage(), result.OnDone());
  result.ended.Wait();
  MU_EXPECT_OK(result.status);
  EXPECT_EQ(result.messages.size(), 1000u);
}

TEST_P(TransportTest, CancelEndsAStream) {
  Notification cancelled;
  std::shared_ptr<ServerCall> kept;
  MethodTable methods;
  methods.AddServerStream("/test/Endless", RunOn::kTransportThread,
                          [&](std::shared_ptr<ServerCall> call, Buffer) {
                            kept = call;
                            call->OnCancel([&] { cancelled.Notify(); });
                            call->Send(Text("one"));
                          });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  StreamResult result;
  auto call =
      channel->ServerStream("/test/Endless", Text(""), {}, result.OnMessage(), result.OnDone());
  result.first.Wait();
  call->Cancel();
  result.ended.Wait();
  cancelled.Wait();
  EXPECT_THAT(result.status, HasCode(absl::StatusCode::kCancelled));
  kept->Send(Text("nobody hears this"));
  kept->Finish(absl::OkStatus());
}

}  // namespace
}  // namespace mu
