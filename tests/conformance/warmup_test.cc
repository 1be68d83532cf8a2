// Learning rates that warm up, from the front end to the servers.
#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using testing::MemoryCluster;

TEST(Warmup, AStepsRateFollowsItsPlaceInTheJob) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(2, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Variable w,
                          c.CreateVariable({.name = "w", .optimizer = Sgd{.learning_rate = 1}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    f.Minimize(w * 1.0f, {.warmup_steps = 4});
  }));
  // Its gradient is 1, so the value goes down by each step's rate: 1/4, 2/4, 3/4, then 1.
  c.Schedule(step, {.steps = 2});
  c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor warm, c.Read(w));
  EXPECT_EQ(*warm.data<float>(), -1.5f);
  c.Schedule(step, {.steps = 3});
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor after, c.Read(w));
  EXPECT_EQ(*after.data<float>(), -4.5f);
}

}  // namespace
}  // namespace mu
