// What the coordinator's own part of the trace says of functions.
#include <map>
#include <string>

#include "tests/coordinator/cluster/played_worker.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::PlayedWorker;

class FunctionSpansTest : public testing::PlayedClusterTest {
 protected:
  // Ends the runtime, so that everything has been recorded.
  std::map<std::string, pb::SpanProto> Spans() {
    runtime_.reset();
    pb::TelemetryRequest request;
    request.set_drain_spans(true);
    std::map<std::string, pb::SpanProto> spans;
    const pb::TelemetryReply reply = telemetry_.ToReply(request);
    for (const pb::SpanProto& span : reply.spans()) spans[span.name()] = span;
    return spans;
  }
};

uint64_t End(const pb::SpanProto& span) { return span.start_ns() + span.duration_ns(); }

TEST_F(FunctionSpansTest, FromScheduleToTheEndAndEachRun) {
  telemetry_.SetTracing(true);
  Start();
  auto worker = Worker(11, 3);
  const RemoteValue value = Schedule(2);
  PlayedWorker::Finish(worker->NextRun());
  MU_ASSERT_OK(runtime_->Join());
  auto spans = Spans();
  ASSERT_TRUE(spans.contains("step") && spans.contains("step on worker 3") &&
              spans.contains("install"));
  const pb::SpanProto &function = spans["step"], &run = spans["step on worker 3"];
  EXPECT_EQ(function.thread(), 0u) << "they overlap";
  EXPECT_EQ(run.thread(), 0u);
  EXPECT_EQ(spans["install"].thread(), 0u) << "those of several workers overlap";
  EXPECT_EQ(function.detail(), "function 1");
  EXPECT_EQ(run.detail(), "function 1, steps 0 to 2");
  EXPECT_LE(function.start_ns(), run.start_ns());
  EXPECT_GE(End(function), End(run));
}

TEST_F(FunctionSpansTest, SayHowAFunctionEnded) {
  telemetry_.SetTracing(true);
  Start();
  auto worker = Worker(11, 3);
  Schedule(2);
  worker->NextRun().call->Finish(testing::UsersError("no"));
  EXPECT_THAT(runtime_->Join(), HasCode(absl::StatusCode::kInvalidArgument));
  auto spans = Spans();
  EXPECT_EQ(spans["step"].detail(), "function 1: INVALID_ARGUMENT");
  EXPECT_EQ(spans["step on worker 3"].detail(), "function 1, steps 0 to 2: INVALID_ARGUMENT");
}

TEST_F(FunctionSpansTest, NothingWithoutTracing) {
  Start();
  auto worker = Worker(11, 3);
  Schedule(1);
  PlayedWorker::Finish(worker->NextRun());
  MU_ASSERT_OK(runtime_->Join());
  EXPECT_TRUE(Spans().empty());
}

}  // namespace
}  // namespace mu
