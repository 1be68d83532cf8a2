// Learning rates that warm up, from the front end to the servers.
#include <cmath>

#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using testing::MemoryCluster;

class Warmup : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, MemoryCluster::Start(2, 1, std::make_shared<FaultPlan>(1)));
    MU_ASSERT_OK_AND_ASSIGN(
        sgd_, coordinator().CreateVariable({.name = "sgd", .optimizer = Sgd{.learning_rate = 1}}));
    MU_ASSERT_OK_AND_ASSIGN(adagrad_,
                            coordinator().CreateVariable(
                                {.name = "adagrad", .optimizer = Adagrad{.learning_rate = 1}}));
    MU_ASSERT_OK_AND_ASSIGN(
        table_, coordinator().CreateEmbeddingTable({.name = "table",
                                                    .rows = 4,
                                                    .dim = 1,
                                                    .initializer = Constant{0},
                                                    .optimizer = Sgd{.learning_rate = 1}}));
    // The gradient of each is 1, so those with SGD go down by each step's rate.
    MU_ASSERT_OK_AND_ASSIGN(step_, coordinator().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym row = EmbeddingLookup(table_, ConstantTensor(Tensor::Of<int64_t>({1}, {2})));
      f.Minimize(sgd_ + adagrad_ + ReduceSum(row), {.warmup_steps = 4});
    }));
    MU_ASSERT_OK_AND_ASSIGN(look_, coordinator().DefineFunction("look", [&](FunctionBuilder& f) {
      const Sym row = EmbeddingLookup(table_, ConstantTensor(Tensor::Of<int64_t>({1}, {2})));
      f.Return("row", ReduceSum(row));
    }));
  }

  Coordinator& coordinator() { return cluster_->coordinator(); }
  void Run(uint32_t steps) {
    coordinator().Schedule(step_, {.steps = steps});
    MU_ASSERT_OK(coordinator().Join());
  }
  float Value(const Variable& variable) {
    const auto value = coordinator().Read(variable);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value->data<float>() : NAN;
  }
  float Row() {
    const auto row = coordinator().Schedule(look_).Fetch();
    EXPECT_TRUE(row.ok()) << row.status();
    return row.ok() ? static_cast<float>(*row->Mean("row")) : NAN;
  }

  std::unique_ptr<MemoryCluster> cluster_;
  Variable sgd_, adagrad_;
  EmbeddingTable table_;
  Function step_, look_;
};

// 1/4, 2/4, 3/4, then 1; what is read does not count. One function at a time: Adagrad's sum
// depends on the order of steps, which two workers do not keep.
TEST_F(Warmup, AStepsRateFollowsItsPlaceInTheJob) {
  Run(2);
  Run(1);
  EXPECT_EQ(Value(sgd_), -1.5f);
  EXPECT_EQ(Row(), -1.5f);
  EXPECT_NEAR(Value(adagrad_), -(0.25 + 0.5 / std::sqrt(2) + 0.75 / std::sqrt(3)), 1e-5);
  Run(3);
  EXPECT_EQ(Value(sgd_), -4.5f);
  EXPECT_EQ(Row(), -4.5f);
}

// Whoever runs it first: a step's rate is that of its place, not of its time.
TEST_F(Warmup, FunctionsAtOnceHaveTheRatesOfTheirPlaces) {
  coordinator().Schedule(step_, {.steps = 2});
  coordinator().Schedule(step_, {.steps = 1});
  Run(3);
  EXPECT_EQ(Value(sgd_), -4.5f);
  EXPECT_EQ(Row(), -4.5f);
}

TEST_F(Warmup, GoesOnAfterValuesWereTakenBack) {
  Run(3);
  const std::string directory = cluster_->directory() + "/saved";
  MU_ASSERT_OK(coordinator().Save(directory));
  Run(5);
  MU_ASSERT_OK(coordinator().Restore(directory));
  EXPECT_EQ(Value(sgd_), -1.5f);
  Run(1);
  EXPECT_EQ(Value(sgd_), -2.5f);
}

// What a server's loss makes run again has the rates that it had.
TEST_F(Warmup, RepeatsHaveTheirRates) {
  coordinator().EnableRecovery(cluster_->directory() + "/checkpoints");
  Run(1);
  MU_ASSERT_OK(coordinator().Checkpoint());
  Run(1);
  Run(2);
  MU_ASSERT_OK(cluster_->StartServer(0));  // the place is taken: back to the checkpoint
  Run(1);
  EXPECT_EQ(Value(sgd_), -3.5f);
  EXPECT_EQ(Row(), -3.5f);
}

}  // namespace
}  // namespace mu
