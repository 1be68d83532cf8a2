#include "common/rpc/metered_transport.h"

#include <gmock/gmock.h>

#include "common/base/mutex.h"
#include "common/obs/metrics.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;

// The value of a counter, or how often a timer was used; -1: there is none.
double ValueOf(const Telemetry& telemetry, const std::string& name, const MetricLabels& labels) {
  MetricList list;
  telemetry.AddMetrics(&list);
  const auto family = list.families().find(name);
  if (family == list.families().end()) return -1;
  for (const MetricSample& sample : family->second.samples) {
    if (sample.labels != labels) continue;
    if (family->second.kind != MetricFamily::kHistogram) return sample.value;
    double count = 0;
    for (const uint64_t bucket : sample.buckets) count += static_cast<double>(bucket);
    return count;
  }
  return -1;
}

struct Answer {
  absl::Status status;
  std::string reply;
};

Answer Ask(Channel& channel, const std::string& method, const std::string& request) {
  Answer answer;
  Notification done;
  channel.Unary(method, Buffer(request), {}, [&](absl::Status status, Buffer reply) {
    answer = {std::move(status), std::string(reply.view())};
    done.Notify();
  });
  done.Wait();
  return answer;
}

TEST(MeteredTransport, CountsCallsBytesAndFailuresByMethod) {
  Telemetry telemetry;
  const auto transport = NewMeteredTransport(NewMemoryTransport(), &telemetry);
  MethodTable methods;
  methods.AddUnary("/muster.Worker/Echo", RunOn::kTransportThread,
                   [](std::shared_ptr<ServerCall> call, Buffer request) {
                     const std::string text(request.view());
                     if (text == "bad") {
                       call->Finish(absl::InvalidArgumentError("bad"));
                       return call->Finish(absl::OkStatus());  // too late, counts for nothing
                     }
                     call->Finish(absl::OkStatus(), Buffer(text + text));
                   });
  methods.AddServerStream("/muster.Worker/Run", RunOn::kTransportThread,
                          [](std::shared_ptr<ServerCall> call, Buffer) {
                            call->Send(Buffer("one"));
                            call->Send(Buffer("three"));
                            call->Finish(absl::OkStatus());
                          });
  MU_ASSERT_OK_AND_ASSIGN(const auto server, transport->Listen("127.0.0.1:0", std::move(methods)));
  const auto channel = transport->Connect(server->address(), pb::ROLE_WORKER);

  const Answer good = Ask(*channel, "/muster.Worker/Echo", "hello");
  MU_EXPECT_OK(good.status);
  EXPECT_EQ(good.reply, "hellohello");
  EXPECT_THAT(Ask(*channel, "/muster.Worker/Echo", "bad").status,
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::_));
  std::vector<std::string> messages;
  Notification ended;
  channel->ServerStream(
      "/muster.Worker/Run", Buffer("go"), {},
      [&](Buffer message) { messages.emplace_back(message.view()); },
      [&](absl::Status status) {
        MU_EXPECT_OK(status);
        ended.Notify();
      });
  ended.Wait();
  EXPECT_THAT(messages, ::testing::ElementsAre("one", "three"));

  const MetricLabels echo = {{"method", "Worker/Echo"}}, run = {{"method", "Worker/Run"}};
  for (const char* side : {"client", "server"}) {
    const std::string name = std::string("muster_rpc_") + side;
    const bool client = name == "muster_rpc_client";
    const char* const in = client ? "_received_bytes_total" : "_sent_bytes_total";
    const char* const out = client ? "_sent_bytes_total" : "_received_bytes_total";
    EXPECT_EQ(ValueOf(telemetry, name + "_seconds", echo), 2) << side;
    EXPECT_EQ(ValueOf(telemetry, name + "_seconds", run), 1) << side;
    EXPECT_EQ(ValueOf(telemetry, name + in, echo), 10) << side;
    EXPECT_EQ(ValueOf(telemetry, name + out, echo), 8) << side;
    EXPECT_EQ(ValueOf(telemetry, name + in, run), 8) << side;
    EXPECT_EQ(ValueOf(telemetry, name + out, run), 2) << side;
    EXPECT_EQ(ValueOf(telemetry, name + "_failures_total",
                      {{"method", "Worker/Echo"}, {"code", "INVALID_ARGUMENT"}}),
              1)
        << side;
    EXPECT_EQ(
        ValueOf(telemetry, name + "_failures_total", {{"method", "Worker/Run"}, {"code", "OK"}}),
        -1)
        << side;
  }
}

TEST(MeteredTransport, PassesCancelsAndCallersOn) {
  const auto transport = NewMeteredTransport(NewMemoryTransport());
  Notification started, cancelled;
  MethodTable methods;
  methods.AddUnary("/muster.Worker/Wait", RunOn::kTransportThread,
                   [&](std::shared_ptr<ServerCall> call, Buffer) {
                     EXPECT_TRUE(call->CallerMayBe(pb::ROLE_WORKER));
                     EXPECT_FALSE(call->IsCancelled());
                     call->OnCancel([&cancelled, call] {
                       EXPECT_TRUE(call->IsCancelled());
                       call->Finish(absl::CancelledError("gone"));
                       cancelled.Notify();
                     });
                     started.Notify();
                   });
  MU_ASSERT_OK_AND_ASSIGN(const auto server, transport->Listen("127.0.0.1:0", std::move(methods)));
  const auto channel = transport->Connect(server->address(), pb::ROLE_WORKER);
  Notification done;
  const auto call =
      channel->Unary("/muster.Worker/Wait", Buffer(), {}, [&](absl::Status status, Buffer) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kCancelled, ::testing::_));
        done.Notify();
      });
  started.Wait();
  call->Cancel();
  done.Wait();
  cancelled.Wait();
}

}  // namespace
}  // namespace mu
