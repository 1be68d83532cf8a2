#include "common/rpc/retry.h"

#include <atomic>

#include "common/rpc/faults.h"
#include "tests/common/rpc/transport_fixture.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;
using ::mu::testing::StatusIs;
using ::testing::HasSubstr;

struct Retry : ::testing::Test {
  Retry() {
    MethodTable methods = EchoMethods();
    methods.AddUnary("/test/Wrong", RunOn::kTransportThread,
                     [this](std::shared_ptr<ServerCall> call, Buffer) {
                       ++served;
                       call->Finish(absl::InvalidArgumentError("no use in trying again"));
                     });
    server = inner->Listen("memory:0", std::move(methods)).value();
    transport = NewFaultyTransport(inner, plan);
    channel = transport->Connect(server->address(), pb::ROLE_PSSERVER);
  }
  absl::Status Call(const std::string& method, RetryOptions options) {
    UnaryResult result;
    options.seed = 3;
    options.first_delay = absl::Milliseconds(1);
    UnaryWithRetries(channel, method, Text("x"), options, result.Callback());
    result.ended.Wait();
    EXPECT_EQ(result.calls, 1);
    if (result.status.ok()) {
      EXPECT_EQ(TextOf(result.reply), "x");
    }
    return result.status;
  }

  std::atomic<int> served{0};
  std::shared_ptr<Transport> inner = NewMemoryTransport();
  std::shared_ptr<FaultPlan> plan = std::make_shared<FaultPlan>(7);
  std::unique_ptr<RpcServer> server;
  std::unique_ptr<Transport> transport;
  std::shared_ptr<Channel> channel;
};

TEST_F(Retry, TriesUntilItIsAnswered) {
  plan->Add({.fault = Fault::kLoseRequest, .times = 3});
  plan->Add({.fault = Fault::kLoseReply, .times = 2});
  MU_EXPECT_OK(Call("/test/Echo", {}));
  EXPECT_EQ(plan->hits(), 5);
}

TEST_F(Retry, AttemptThatHangsIsGivenUp) {
  plan->Add(
      {.fault = Fault::kLoseRequest, .times = 2, .error = absl::StatusCode::kDeadlineExceeded});
  MU_EXPECT_OK(Call("/test/Echo", {.attempt_timeout = absl::Milliseconds(10)}));
  EXPECT_EQ(plan->hits(), 2);
}

TEST_F(Retry, OtherErrorsAreNotTriedAgain) {
  EXPECT_THAT(Call("/test/Wrong", {}),
              StatusIs(absl::StatusCode::kInvalidArgument, "no use in trying again"));
  EXPECT_EQ(served, 1);
}

TEST_F(Retry, EndsWhenTheTimeIsUp) {
  plan->Add({.fault = Fault::kLoseRequest});
  EXPECT_THAT(Call("/test/Echo", {.timeout = absl::Milliseconds(500)}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("was tried")));
  EXPECT_GT(plan->hits(), 1);
}

TEST_F(Retry, CancelEndsItInAnyPhase) {
  plan->Add({.fault = Fault::kLoseRequest});
  for (int i = 0; i < 100; ++i) {
    UnaryResult result;
    auto call = UnaryWithRetries(
        channel, "/test/Echo", Text("x"),
        {.timeout = absl::Hours(1), .first_delay = absl::Hours(2), .longest_delay = absl::Hours(2)},
        result.Callback());
    if (i % 2 == 0) {
      // Into the pause between attempts, or so.
      UnaryResult other;
      channel->Unary("/test/Echo", Text("x"), {}, other.Callback());
      other.ended.Wait();
    }
    call->Cancel();
    call->Cancel();
    result.ended.Wait();
    EXPECT_FALSE(result.status.ok());
    EXPECT_EQ(result.calls, 1);
  }
}

TEST(Backoff, DoublesWithJitterUpToTheLongest) {
  Backoff backoff(absl::Milliseconds(10), absl::Milliseconds(80), 5);
  double upper_ms = 10;
  for (int i = 0; i < 20; ++i) {
    const double ms = absl::ToDoubleMilliseconds(backoff.Next());
    EXPECT_GE(ms, upper_ms / 2 - 1e-6);
    EXPECT_LE(ms, upper_ms + 1e-6);
    upper_ms = std::min(80.0, upper_ms * 2);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), absl::Milliseconds(10));
  // The same seed gives the same delays, another seed others.
  Backoff a(absl::Milliseconds(10), absl::Seconds(1), 1),
      b(absl::Milliseconds(10), absl::Seconds(1), 1),
      c(absl::Milliseconds(10), absl::Seconds(1), 2);
  const absl::Duration first = a.Next();
  EXPECT_EQ(first, b.Next());
  EXPECT_NE(first, c.Next());
}

}  // namespace
}  // namespace mu
