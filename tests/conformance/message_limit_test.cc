// A function that returns more than a message holds ends with an error that says so, and costs the
// cluster nothing.
#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MemoryCluster;
using testing::StatusIs;

TEST(MessageLimit, AResultAboveItIsTheFunctionsError) {
  WorkerOptions worker;
  worker.most_result_bytes = 100'000;
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          MemoryCluster::Start(2, 1, std::make_shared<FaultPlan>(1), worker));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable weights,
      c.CreateVariable({.name = "weights", .shape = Shape({50'000}), .dtype = kFloat32}));
  MU_ASSERT_OK_AND_ASSIGN(const Function large, c.DefineFunction("large", [&](FunctionBuilder& f) {
    f.Return("weights", Read(weights));
  }));
  MU_ASSERT_OK_AND_ASSIGN(const Function small, c.DefineFunction("small", [&](FunctionBuilder& f) {
    f.Return("mean", ReduceMean(Read(weights)));
  }));
  c.Schedule(large);
  EXPECT_THAT(c.Join(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("'large'"), HasSubstr("a message has 100000"),
                                       HasSubstr("return smaller ones"))));
  std::vector<RemoteValue> values;
  for (int i = 0; i < 20; ++i) values.push_back(c.Schedule(small, {.steps = 5}));
  MU_ASSERT_OK(c.Join());
  for (const RemoteValue& value : values) MU_EXPECT_OK(c.Fetch(value));
  EXPECT_THAT(c.runtime().Stats().failures, ::testing::IsEmpty());
}

}  // namespace
}  // namespace mu
