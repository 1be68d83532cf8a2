// Updates that reach a server when their function has ended in an error's wake.
#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/psserver/frames.h"

namespace mu {
namespace {

using testing::HasCode;
using testing::MemoryCluster;

absl::Status Send(Channel& channel, const pb::PushRequest& push, const std::string& payload) {
  Notification done;
  absl::Status result;
  channel.Unary("/muster.PsServer/Push", testing::Frame(push, payload), {},
                [&](absl::Status status, Buffer) {
                  result = std::move(status);
                  done.Notify();
                });
  done.Wait();
  return result;
}

// The low-water mark is no measure for it: what has finished and is in no checkpoint would run
// again if a server were lost, and holds the mark down.
TEST(LateUpdates, OfACancelledFunctionAreRefusedOnceTheErrorIsReported) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  c.EnableRecovery(cluster->directory() + "/checkpoints");
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          c.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function count, c.DefineFunction("count", [&](FunctionBuilder&) {
    AssignAdd(counter, 1);
  }));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, c.DefineFunction("log", [&](FunctionBuilder& f) {
    f.Return("log", Log(f.Arg("x")));
  }));
  const RemoteValue finished = c.Schedule(count);
  MU_ASSERT_OK(c.Join());
  RemoteValue cancelled;
  while (cancelled.id() == FunctionId()) {  // the error came before it was scheduled
    c.Schedule(log, {.args = {{"x", -1.0}}});
    cancelled = c.Schedule(count, {.steps = 1'000'000});
    EXPECT_THAT(c.Join(), HasCode(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(cancelled.Fetch(), HasCode(absl::StatusCode::kCancelled));

  pb::PushRequest push;
  *push.mutable_context() = c.runtime().Context();
  ASSERT_EQ(push.context().low_water(), finished.id().value());
  push.set_function(cancelled.id().value());
  push.set_step(999'999);
  pb::VariableUpdate* const update = push.add_variables();
  update->set_variable(counter.proto().id());
  update->set_kind(pb::VariableUpdate::ASSIGN_ADD);
  MU_ASSERT_OK_AND_ASSIGN(const Tensor before, c.Read(counter));
  const absl::Status refused =
      Send(*cluster->ChannelTo(cluster->ServerAddress(0)), push, testing::Bytes<int64_t>({1000}));
  EXPECT_EQ(KindOf(refused), pb::ERROR_STALE) << refused;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor after, c.Read(counter));
  EXPECT_EQ(*after.data<int64_t>(), *before.data<int64_t>());
}

}  // namespace
}  // namespace mu
