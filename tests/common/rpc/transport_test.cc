// What holds for every transport: unary calls, errors, deadlines, cancelling, sizes, threads.
#include "common/rpc/transport.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/rpc/typed.h"
#include "proto/telemetry.pb.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

TEST_P(TransportTest, UnaryCallAnswers) {
  auto server = Listen(EchoMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_EQ(CallText(*channel, "/test/Echo", "hello").value(), "hello");
  EXPECT_EQ(CallText(*channel, "/test/Echo", "").value(), "");
}

TEST_P(TransportTest, BuffersAreAlignedAndWhole) {
  std::atomic<int> misaligned{0};
  MethodTable methods;
  methods.AddUnary("/test/Echo", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer request) {
                     if (reinterpret_cast<uintptr_t>(request.data()) % 16 != 0) ++misaligned;
                     call->Finish(absl::OkStatus(), std::move(request));
                   });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  for (const size_t size : {1, 15, 16, 100, 255, 256, 257, 5000, 16384, 70000, 1 << 20}) {
    std::string bytes(size, 'x');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 131 >> 3);
    UnaryResult result;
    MutableBuffer request(size);
    std::memcpy(request.data(), bytes.data(), size);
    channel->Unary("/test/Echo", std::move(request).Finish(), {}, result.Callback());
    result.ended.Wait();
    MU_ASSERT_OK(result.status);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(result.reply.data()) % 16, 0u) << size;
    EXPECT_TRUE(TextOf(result.reply) == bytes) << size;
  }
  EXPECT_EQ(misaligned, 0);
}

TEST_P(TransportTest, ErrorsKeepCodeMessageAndDetail) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_index(7);
  MethodTable methods;
  methods.AddUnary("/test/Fail", RunOn::kOwnThread, [&](std::shared_ptr<ServerCall> call, Buffer) {
    call->Finish(
        WithDetail(absl::FailedPreconditionError("epoch 3 is over: use 4 ünïcode"), detail));
  });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  const absl::Status status = CallText(*channel, "/test/Fail", "x").status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kFailedPrecondition, "epoch 3 is over: use 4 ünïcode"));
  ASSERT_TRUE(DetailOf(status).has_value());
  EXPECT_EQ(DetailOf(status)->index(), 7u);
  EXPECT_EQ(KindOf(status), pb::ERROR_STALE);
}

TEST_P(TransportTest, LongErrorMessagesArrive) {
  const std::string text(20'000, 'e');
  MethodTable methods;
  methods.AddUnary("/test/Fail", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer) {
                     call->Finish(absl::InvalidArgumentError(text));
                   });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  const absl::Status status = CallText(*channel, "/test/Fail", "x").status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, text));
  EXPECT_EQ(KindOf(status), pb::ERROR_MACHINE) << "nobody says that it is the user's";
}

TEST_P(TransportTest, UnknownMethodIsUnimplemented) {
  auto server = Listen(EchoMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_THAT(CallText(*channel, "/test/Nothing", "x").status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("/test/Nothing")));
}

TEST_P(TransportTest, HandlerThatLetsGoAnswersInternal) {
  MethodTable methods;
  methods.AddUnary("/test/Drop", RunOn::kTransportThread,
                   [](std::shared_ptr<ServerCall>, Buffer) {});
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_THAT(CallText(*channel, "/test/Drop", "x").status(), HasCode(absl::StatusCode::kInternal));
}

TEST_P(TransportTest, SecondFinishIsIgnored) {
  MethodTable methods;
  methods.AddUnary("/test/Twice", RunOn::kTransportThread,
                   [](std::shared_ptr<ServerCall> call, Buffer) {
                     call->Finish(absl::OkStatus(), Text("first"));
                     call->Finish(absl::InternalError("second"));
                     call->Send(Text("late"));
                   });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  EXPECT_EQ(CallText(*channel, "/test/Twice", "x").value(), "first");
}

TEST_P(TransportTest, DeadlineEndsTheCallOnBothSides) {
  Notification cancelled;
  Mutex mutex;
  std::vector<std::shared_ptr<ServerCall>> kept;
  const auto first = [&] {
    MutexLock lock(&mutex);
    return kept.empty() ? nullptr : kept[0];
  };
  MethodTable methods;
  methods.AddUnary("/test/Hang", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer) {
                     {
                       MutexLock lock(&mutex);
                       kept.push_back(call);
                       if (kept.size() > 1) return;
                     }
                     call->OnCancel([&] { cancelled.Notify(); });
                   });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  // On a busy machine the time may be over before the call has reached its handler, which then
  // never hears of it.
  for (absl::Duration timeout = absl::Milliseconds(50); first() == nullptr; timeout *= 2) {
    EXPECT_THAT(CallText(*channel, "/test/Hang", "x", timeout).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("/test/Hang")));
  }
  cancelled.Wait();
  EXPECT_TRUE(first()->IsCancelled());
  first()->Finish(absl::OkStatus(), Text("too late"));
}

TEST_P(TransportTest, CancelFromTheClientReachesTheHandler) {
  Notification started, cancelled;
  std::shared_ptr<ServerCall> kept;
  MethodTable methods;
  methods.AddUnary("/test/Hang", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer) {
                     kept = call;
                     call->OnCancel([&] { cancelled.Notify(); });
                     started.Notify();
                   });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  UnaryResult result;
  auto call = channel->Unary("/test/Hang", Text("x"), {}, result.Callback());
  started.Wait();
  call->Cancel();
  call->Cancel();
  result.ended.Wait();
  EXPECT_THAT(result.status, HasCode(absl::StatusCode::kCancelled));
  cancelled.Wait();
  // Set after the fact it is called at once.
  bool called = false;
  kept->OnCancel([&] { called = true; });
  EXPECT_TRUE(called);
  kept->Finish(absl::OkStatus());
  call->Cancel();
}

TEST_P(TransportTest, CallCancelledAtOnceEnds) {
  auto server = Listen(EchoMethods(RunOn::kOwnThread));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  for (int i = 0; i < 50; ++i) {
    UnaryResult result;
    channel->Unary("/test/Echo", Text("x"), {}, result.Callback())->Cancel();
    result.ended.Wait();
    EXPECT_TRUE(result.status.ok() || result.status.code() == absl::StatusCode::kCancelled)
        << result.status;
    EXPECT_EQ(result.calls, 1);
  }
}

TEST_P(TransportTest, HundredMegabytesThereAndBack) {
  auto server = Listen(EchoMethods());
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  MutableBuffer big(100'000'000);
  std::memset(big.data(), 0x5A, big.size());
  big.data()[99'999'999] = 'e';
  UnaryResult result;
  channel->Unary("/test/Echo", std::move(big).Finish(), {}, result.Callback());
  result.ended.Wait();
  MU_ASSERT_OK(result.status);
  ASSERT_EQ(result.reply.size(), 100'000'000u);
  EXPECT_EQ(result.reply.data()[0], 0x5A);
  EXPECT_EQ(result.reply.data()[99'999'999], 'e');
}

TEST_P(TransportTest, ManyThreadsCallAtOnce) {
  auto server = Listen(EchoMethods(RunOn::kOwnThread));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = absl::StrCat(t, "/", i);
        const auto reply = CallText(*channel, "/test/Echo", text);
        if (!reply.ok() || *reply != text) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(TransportTest, BlockedHandlersDoNotStopInlineOnes) {
  Notification release;
  std::atomic<int> blocked{0};
  MethodTable methods = EchoMethods();
  methods.AddUnary("/test/Block", RunOn::kOwnThread, [&](std::shared_ptr<ServerCall> call, Buffer) {
    ++blocked;
    release.Wait();
    call->Finish(absl::OkStatus());
  });
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  std::vector<UnaryResult> results(40);
  for (UnaryResult& result : results)
    channel->Unary("/test/Block", Text("x"), {}, result.Callback());
  // All are blocked at once, each on a thread of its own, and still the others are answered.
  while (blocked < 40) EXPECT_EQ(CallText(*channel, "/test/Echo", "a").value(), "a");
  release.Notify();
  for (UnaryResult& result : results) {
    result.ended.Wait();
    MU_EXPECT_OK(result.status);
  }
}

TEST_P(TransportTest, TypedCalls) {
  MethodTable methods;
  methods.AddUnary("/test/Typed", RunOn::kOwnThread,
                   TypedHandler<pb::CounterProto>(
                       [](const pb::CounterProto& request) -> absl::StatusOr<pb::CounterProto> {
                         if (request.value() < 0) return absl::InvalidArgumentError("negative");
                         pb::CounterProto reply = request;
                         reply.set_value(request.value() + 1);
                         return reply;
                       }));
  auto server = Listen(std::move(methods));
  auto channel = transport_->Connect(server->address(), pb::ROLE_PSSERVER);
  pb::CounterProto request;
  request.set_value(41);
  MU_ASSERT_OK_AND_ASSIGN(const pb::CounterProto reply,
                          (Call<pb::CounterProto>(*channel, "/test/Typed", request)));
  EXPECT_EQ(reply.value(), 42);
  request.set_value(-1);
  EXPECT_THAT(Call<pb::CounterProto>(*channel, "/test/Typed", request),
              StatusIs(absl::StatusCode::kInvalidArgument, "negative"));
  EXPECT_THAT(CallText(*channel, "/test/Typed", "\xFF\xFFgarbage").status(),
              HasCode(absl::StatusCode::kInvalidArgument));
}

std::vector<std::string> AllTransports() {
#if MUSTER_WITH_GRPC
  return {"grpc", "memory"};
#else
  return {"memory"};
#endif
}
INSTANTIATE_TEST_SUITE_P(All, TransportTest, ::testing::ValuesIn(AllTransports()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace mu
