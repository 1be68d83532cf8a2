// Batch norm's averages, through coordinator, workers and servers: they follow the formula of one
// worker, however many steps are in flight, and move once a synchronous round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/layers_norm.h"
#include "coordinator/frontend/memory_data.h"
#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::MemoryCluster;

constexpr int64_t kBatch = 8, kChannels = 3;
constexpr int kSteps = 60;
constexpr double kMomentum = 0.9;

// All batches have the same records, so the order of the steps does not matter.
Tensor Records() {
  Tensor x(kFloat32, Shape({kBatch * kSteps, kChannels}));
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t place = i % (kBatch * kChannels);
    x.data<float>()[i] =
        2.0f * std::sin(static_cast<float>(5 * place)) + static_cast<float>(place % kChannels);
  }
  return x;
}

// Creates variables with a coordinator, and knows them by name.
class NotingFactory : public VariableFactory {
 public:
  explicit NotingFactory(Coordinator* c) : c_(c) {}
  absl::StatusOr<Variable> CreateVariable(const VariableSpec& spec) override {
    MU_ASSIGN_OR_RETURN(const Variable variable, c_->CreateVariable(spec));
    variables_[spec.name] = variable;
    return variable;
  }
  absl::StatusOr<EmbeddingTable> CreateEmbeddingTable(const EmbeddingTableSpec& spec) override {
    return c_->CreateEmbeddingTable(spec);
  }
  std::vector<float> Read(const std::string& name) {
    const absl::StatusOr<Tensor> value = c_->Read(variables_.at(name));
    EXPECT_THAT(value, testing::IsOk());
    if (!value.ok()) return std::vector<float>(kChannels, NAN);
    const auto flat = value->flat<float>();
    return {flat.begin(), flat.end()};
  }

 private:
  Coordinator* const c_;
  std::map<std::string, Variable> variables_;
};

// Trains kSteps steps; then the averages have moved `moves()` times.
template <typename Moves>
void TrainAndCompare(Coordinator& c, const Moves& moves) {
  NotingFactory factory(&c);
  MU_ASSERT_OK_AND_ASSIGN(
      const BatchNorm norm,
      BatchNorm::Create(factory, "norm", kChannels, {.optimizer = Sgd{.learning_rate = 0.01f}}));
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      c.CreateDataset(FromTensors({{"x", Records()}}).Batch(kBatch).BlockRecords(kBatch * 20)));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    f.Train();
    f.Minimize(ReduceMean(Square(norm(f.NextBatch(data)["x"]))));
  }));
  for (int i = 0; i < kSteps; ++i) c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  const double left = std::pow(kMomentum, static_cast<double>(moves()));
  const std::vector<float> means = factory.Read("norm/moving_mean"),
                           variances = factory.Read("norm/moving_variance");
  const Tensor records = Records();
  const float* const x = records.data<float>();
  for (int64_t k = 0; k < kChannels; ++k) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < kBatch; ++i) mean += x[i * kChannels + k] / kBatch;
    for (int64_t i = 0; i < kBatch; ++i)
      variance += std::pow(x[i * kChannels + k] - mean, 2) / (kBatch - 1);
    EXPECT_NEAR(means[k], mean * (1 - left), 1e-4);
    EXPECT_NEAR(variances[k], left + variance * (1 - left), 1e-4);
  }
}

TEST(MovingAverages, FollowTheFormulaWithManyWorkers) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(4, 2, std::make_shared<FaultPlan>(1)));
  TrainAndCompare(cluster->coordinator(), [] { return kSteps; });
}

TEST(MovingAverages, MoveOnceARound) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(2, 2, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = 4}));
  TrainAndCompare(c, [&] {
    const uint64_t rounds = c.Stats().rounds.committed;
    EXPECT_LT(rounds, static_cast<uint64_t>(kSteps) / 2);
    return rounds;
  });
}

}  // namespace
}  // namespace mu
