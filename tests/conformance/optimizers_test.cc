// Optimizers and schedules through coordinator, workers and servers: what follows from a step's
// place in the job is the same for any packing and any number of servers, and when a step runs
// again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/memory_cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::MemoryCluster;

constexpr int64_t kRows = 40, kDim = 3;

// A model whose gradients follow from its values, trained by one worker.
class Trained {
 public:
  static std::unique_ptr<Trained> Start(int ps, const Optimizer& optimizer,
                                        const MinimizeOptions& rates) {
    auto cluster = MemoryCluster::Start(1, ps, std::make_shared<FaultPlan>(/*seed=*/1));
    EXPECT_THAT(cluster, testing::IsOk());
    if (!cluster.ok()) return nullptr;
    auto trained = std::unique_ptr<Trained>(new Trained(*std::move(cluster)));
    EXPECT_THAT(trained->Define(optimizer, rates), testing::IsOk());
    return trained;
  }

  Coordinator& coordinator() { return cluster_->coordinator(); }
  MemoryCluster& cluster() { return *cluster_; }
  const Function& step() const { return step_; }
  void Run(uint32_t steps, std::vector<std::pair<std::string, ArgValue>> args = {}) {
    coordinator().Schedule(step_, {.steps = steps, .args = std::move(args)});
    MU_ASSERT_OK(coordinator().Join());
  }
  std::vector<float> Values() {
    std::vector<float> values;
    const auto read = [&](const absl::StatusOr<Tensor>& tensor) {
      EXPECT_THAT(tensor, testing::IsOk());
      if (tensor.ok())
        values.insert(values.end(), tensor->data<float>(),
                      tensor->data<float>() + tensor->elements());
    };
    read(coordinator().Read(kernel_));
    read(coordinator().Read(scalar_));
    std::vector<int64_t> ids(kRows);
    for (int64_t i = 0; i < kRows; ++i) ids[i] = i;
    read(coordinator().ReadRows(table_, ids));
    return values;
  }

 private:
  explicit Trained(std::unique_ptr<MemoryCluster> cluster) : cluster_(std::move(cluster)) {}
  absl::Status Define(const Optimizer& optimizer, const MinimizeOptions& rates) {
    MU_ASSIGN_OR_RETURN(kernel_, coordinator().CreateVariable({.name = "kernel",
                                                               .shape = {8, kDim},
                                                               .initializer = Normal{0, 1},
                                                               .optimizer = optimizer,
                                                               .partitioner = FixedShards{4}}));
    MU_ASSIGN_OR_RETURN(
        scalar_, coordinator().CreateVariable(
                     {.name = "scalar", .initializer = Constant{0.5f}, .optimizer = optimizer}));
    MU_ASSIGN_OR_RETURN(table_, coordinator().CreateEmbeddingTable({.name = "table",
                                                                    .rows = kRows,
                                                                    .dim = kDim,
                                                                    .initializer = Normal{0, 1},
                                                                    .optimizer = optimizer}));
    MU_ASSIGN_OR_RETURN(step_, coordinator().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym rows =
          EmbeddingLookup(table_, ConstantTensor(Tensor::Of<int64_t>({4}, {1, 7, 8, 33})));
      const Sym all = MatMul(rows, Transpose(Read(kernel_), {1, 0})) + Read(scalar_);
      f.Minimize(ReduceMean(all * all), rates);
    }));
    return absl::OkStatus();
  }

  std::unique_ptr<MemoryCluster> cluster_;
  Variable kernel_, scalar_;
  EmbeddingTable table_;
  Function step_;
};

const Adam kAdam{.learning_rate = 0.05f};
const MinimizeOptions kCosine{.warmup_steps = 3, .schedule = CosineDecay{.steps = 9}};

TEST(OptimizersTest, PackingAndServersDoNotMatter) {
  const auto together = Trained::Start(1, kAdam, kCosine),
             apart = Trained::Start(3, kAdam, kCosine);
  together->Run(12);
  for (const uint32_t steps : {1, 4, 2, 5}) apart->Run(steps);
  EXPECT_EQ(together->Values(), apart->Values());
}

// Adam's first step is of the size of the learning rate: by that the step's place and the schedule
// are known.
TEST(OptimizersTest, StepsHaveTheRatesOfTheirPlaces) {
  const auto trained =
      Trained::Start(2, Adam{.learning_rate = 0.5f},
                     {.warmup_steps = 2, .schedule = StepDecay{.every = 2, .factor = 0.5f}});
  std::vector<float> before = trained->Values();
  trained->Run(1);
  std::vector<float> after = trained->Values();
  for (size_t i = 0; i < 8 * kDim; ++i)
    EXPECT_NEAR(std::abs(after[i] - before[i]), 0.25f, 1e-4f) << i;
}

TEST(OptimizersTest, RepeatsAfterALossHaveTheirPlaces) {
  const auto undisturbed = Trained::Start(1, kAdam, kCosine);
  undisturbed->Run(2);
  undisturbed->Run(3);
  undisturbed->Run(4);
  const auto disturbed = Trained::Start(1, kAdam, kCosine);
  disturbed->coordinator().EnableRecovery(disturbed->cluster().directory() + "/checkpoints");
  disturbed->Run(2);
  MU_ASSERT_OK(disturbed->coordinator().Checkpoint());
  disturbed->Run(3);
  MU_ASSERT_OK(disturbed->cluster().StartServer(0));  // the place is taken: back to the checkpoint
  disturbed->Run(4);
  EXPECT_EQ(disturbed->Values(), undisturbed->Values());
}

TEST(OptimizersTest, ACallBringsItsRateAlong) {
  const auto scheduled = Trained::Start(2, Sgd{0.1f}, {.rate_arg = "rate"});
  const auto plain = Trained::Start(2, Sgd{0.1f}, {});
  const std::vector<float> before = scheduled->Values();
  scheduled->Run(1, {{"rate", 0.0f}});
  EXPECT_EQ(scheduled->Values(), before);
  scheduled->Run(2, {{"rate", 1.0f}});
  plain->Run(2);
  EXPECT_EQ(scheduled->Values(), plain->Values());
  scheduled->coordinator().Schedule(scheduled->step(), {.args = {{"rate", -1.0f}}});
  EXPECT_THAT(scheduled->coordinator().Join(),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("argument 'rate' multiplies")));
}

}  // namespace
}  // namespace mu
