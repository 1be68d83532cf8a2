#include "common/rpc/faults.h"

#include <atomic>
#include <thread>

#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

struct Faulty : ::testing::Test {
  Faulty() {
    MethodTable methods;
    for (const char* method : {"/muster.A/Push", "/muster.A/Pull"}) {
      methods.AddUnary(method, RunOn::kTransportThread,
                       [this](std::shared_ptr<ServerCall> call, Buffer request) {
                         ++served;
                         call->Finish(absl::OkStatus(), std::move(request));
                       });
    }
    server = inner->Listen("memory:0", std::move(methods)).value();
    transport = NewFaultyTransport(inner, plan);
    channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  }
  absl::Status Push(absl::Duration timeout = absl::Seconds(20)) {
    return CallText(*channel, "/muster.A/Push", "x", timeout).status();
  }

  std::atomic<int> served{0};
  std::shared_ptr<Transport> inner = NewMemoryTransport();
  std::shared_ptr<FaultPlan> plan = std::make_shared<FaultPlan>(7);
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<Transport> transport;
  std::shared_ptr<Channel> channel;
};

TEST_F(Faulty, LostRequestNeverArrives) {
  plan->Add({.method = "Push", .fault = Fault::kLoseRequest, .times = 1});
  EXPECT_THAT(Push(), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(served, 0);
  MU_EXPECT_OK(Push());
  EXPECT_EQ(served, 1);
  EXPECT_EQ(plan->hits(), 1);
}

TEST_F(Faulty, SilentLossEndsAtTheDeadline) {
  plan->Add(
      {.fault = Fault::kLoseRequest, .times = 1, .error = absl::StatusCode::kDeadlineExceeded});
  EXPECT_THAT(Push(absl::Milliseconds(20)), HasCode(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(Faulty, LostReplyWasServed) {
  plan->Add({.method = "/muster.A/Push", .fault = Fault::kLoseReply, .times = 1});
  EXPECT_THAT(Push(), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(served, 1);
}

TEST_F(Faulty, DuplicateArrivesTwice) {
  plan->Add({.method = "Push", .fault = Fault::kDuplicate, .times = 1});
  MU_EXPECT_OK(Push());
  while (served < 2) std::this_thread::yield();
  MU_EXPECT_OK(Push());
  EXPECT_EQ(served, 3);
}

TEST_F(Faulty, StreamsLoseAllTheirMessagesOrAreServedTwice) {
  std::atomic<int> streams{0};
  MethodTable methods;
  methods.AddServerStream("/muster.A/Run", RunOn::kTransportThread,
                          [&](std::shared_ptr<ServerCall> call, Buffer) {
                            ++streams;
                            call->Send(Buffer("one"));
                            call->Send(Buffer("two"));
                            call->Finish(absl::OkStatus());
                          });
  const auto other = inner->Listen("memory:0", std::move(methods)).value();
  const auto to = transport->Connect(other->address(), pb::ROLE_PSSERVER);
  const auto run = [&](int* messages) {
    Notification done;
    absl::Status result;
    to->ServerStream(
        "/muster.A/Run", Buffer("x"), {}, [&](Buffer) { ++*messages; },
        [&](absl::Status status) {
          result = std::move(status);
          done.Notify();
        });
    done.Wait();
    return result;
  };
  int messages = 0;
  plan->Add({.method = "Run", .fault = Fault::kLoseReply, .times = 1});
  EXPECT_THAT(run(&messages), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(messages, 0);
  EXPECT_EQ(streams, 1);
  plan->Add({.method = "Run", .fault = Fault::kDuplicate, .times = 1});
  MU_EXPECT_OK(run(&messages));
  EXPECT_EQ(messages, 2);
  while (streams < 3) std::this_thread::yield();
  EXPECT_THAT(plan->called(), ::testing::ElementsAre("/muster.A/Run"));
}

TEST_F(Faulty, SkipTimesAndMethodChoose) {
  plan->Add({.method = "Push", .skip = 2, .times = 2});
  std::string pattern;
  for (int i = 0; i < 6; ++i) {
    MU_EXPECT_OK(CallText(*channel, "/muster.A/Pull", "x"));
    const bool ok = Push().ok();
    pattern += ok ? '.' : 'x';
  }
  EXPECT_EQ(pattern, "..xx..");
}

TEST_F(Faulty, SameSeedSameFaults) {
  std::string patterns[2];
  for (std::string& pattern : patterns) {
    FaultPlan fresh(99);
    fresh.Add({.probability = 0.3});
    FaultRule rule;
    for (int i = 0; i < 200; ++i) pattern += fresh.Decide("/a/B", &rule) ? 'x' : '.';
  }
  EXPECT_EQ(patterns[0], patterns[1]);
  EXPECT_NE(patterns[0].find('x'), std::string::npos);
  EXPECT_NE(patterns[0].find('.'), std::string::npos);
}

TEST_F(Faulty, DelayedCallArrivesOrIsCancelled) {
  plan->Add({.fault = Fault::kDelay, .times = 1, .delay = absl::Milliseconds(5)});
  MU_EXPECT_OK(Push());
  EXPECT_EQ(served, 1);
  plan->Add({.fault = Fault::kDelay, .times = 1, .delay = absl::Hours(1)});
  UnaryResult result;
  auto call = channel->Unary("/muster.A/Push", Text("x"), {}, result.Callback());
  call->Cancel();
  result.ended.Wait();
  EXPECT_THAT(result.status, HasCode(absl::StatusCode::kCancelled));
  EXPECT_EQ(served, 1);
}

TEST_F(Faulty, ALateCopyComesAfterTheAnswer) {
  plan->Add({.fault = Fault::kLateCopy, .times = 1, .delay = absl::Milliseconds(5)});
  MU_EXPECT_OK(Push());
  while (served < 2) std::this_thread::yield();
  plan->Add({.fault = Fault::kLateCopy, .times = 1, .delay = absl::Hours(1)});
  MU_EXPECT_OK(Push());
  transport.reset();  // ends the copy that has not left
  EXPECT_EQ(served, 3);
}

TEST_F(Faulty, TransportEndsWhatHasNotLeft) {
  plan->Add({.fault = Fault::kDelay, .delay = absl::Hours(1)});
  UnaryResult result;
  channel->Unary("/muster.A/Push", Text("x"), {}, result.Callback());
  transport.reset();
  EXPECT_TRUE(result.ended.HasBeenNotified());
  EXPECT_EQ(result.calls, 1);
}

}  // namespace
}  // namespace mu
