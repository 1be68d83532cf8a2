// Gradients accumulated over the slices of a batch, through coordinator, workers and servers: the
// parameters of whole batches with every kind of optimizer, and exactly once whatever is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/memory_data.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/example_optimizers.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::MemoryCluster;

constexpr int64_t kRecords = 90, kBatch = 11, kRows = 12, kDim = 3;
constexpr uint32_t kSteps = 9;  // of an epoch; the last one has 2 records

// A table and a kernel that learn numbers, and counters of steps and records.
class SlicedJob {
 public:
  using Counts = std::pair<int64_t, int64_t>;

  static absl::StatusOr<std::unique_ptr<SlicedJob>> Start(int workers, uint32_t micro_batches,
                                                          const Optimizer& optimizer) {
    auto job = std::unique_ptr<SlicedJob>(new SlicedJob);
    MU_ASSIGN_OR_RETURN(job->cluster_,
                        MemoryCluster::Start(workers, 2, std::make_shared<FaultPlan>(/*seed=*/1)));
    MU_RETURN_IF_ERROR(job->Define(micro_batches, optimizer));
    return job;
  }

  MemoryCluster& cluster() { return *cluster_; }
  Coordinator& c() { return cluster_->coordinator(); }
  RemoteValue Schedule(uint32_t steps) { return c().Schedule(step_, {.steps = steps}); }
  void Run(uint32_t steps) {
    Schedule(steps);
    MU_ASSERT_OK(c().Join());
  }
  std::vector<float> Values() {
    std::vector<float> values;
    const auto read = [&](const absl::StatusOr<Tensor>& tensor) {
      MU_ASSERT_OK(tensor);
      for (const float value : tensor->flat<float>()) values.push_back(value);
    };
    read(c().Read(kernel_));
    std::vector<int64_t> ids(kRows);
    for (int64_t i = 0; i < kRows; ++i) ids[i] = i;
    read(c().ReadRows(table_, ids));
    return values;
  }
  Counts StepsAndRecords() {
    std::vector<int64_t> counts;
    for (const Variable& counter : {steps_, records_}) {
      const absl::StatusOr<Tensor> value = c().Read(counter);
      EXPECT_THAT(value, testing::IsOk());
      counts.push_back(value.ok() ? *value->data<int64_t>() : -1);
    }
    return {counts[0], counts[1]};
  }

 private:
  static DatasetSpec Data() {
    Tensor id(kInt64, {kRecords}), x(kFloat32, {kRecords, 4}), y(kFloat32, {kRecords});
    for (int64_t i = 0; i < kRecords; ++i) {
      id.data<int64_t>()[i] = i * i % kRows;
      for (int64_t k = 0; k < 4; ++k)
        x.data<float>()[4 * i + k] = std::sin(static_cast<float>(3 * i + 7 * k));
      y.data<float>()[i] = 2 + std::cos(static_cast<float>(i));
    }
    // Several leases of few batches, in the order of their names.
    return FromTensors({{"id", id}, {"x", x}, {"y", y}}).Batch(kBatch).BlockRecords(kBatch * 3);
  }

  absl::Status Define(uint32_t micro_batches, const Optimizer& optimizer) {
    MU_ASSIGN_OR_RETURN(kernel_, c().CreateVariable({.name = "kernel",
                                                     .shape = {4, kDim},
                                                     .initializer = Normal{0, 1},
                                                     .optimizer = optimizer}));
    MU_ASSIGN_OR_RETURN(table_, c().CreateEmbeddingTable({.name = "table",
                                                          .rows = kRows,
                                                          .dim = kDim,
                                                          .initializer = Normal{0, 1},
                                                          .optimizer = optimizer}));
    MU_ASSIGN_OR_RETURN(steps_,
                        c().CreateVariable({.name = "steps", .dtype = kInt64, .trainable = false}));
    MU_ASSIGN_OR_RETURN(
        records_, c().CreateVariable({.name = "records", .dtype = kInt64, .trainable = false}));
    MU_ASSIGN_OR_RETURN(const Dataset data, c().CreateDataset(Data()));
    MU_ASSIGN_OR_RETURN(step_, c().DefineFunction("step", [&](FunctionBuilder& f) {
      const BatchRef batch = f.NextBatch(data);
      const Sym rows = EmbeddingLookup(table_, batch["id"]);
      const Sym product = ReduceSum(rows * MatMul(batch["x"], kernel_), {1});
      const Sym loss = ReduceMean(Square(product + ReduceSum(rows, {1}) - batch["y"]));
      f.Minimize(loss, {.gradients = {.clip_by_global_norm = 5}, .micro_batches = micro_batches});
      AssignAdd(steps_, ConstantTensor(Tensor::Scalar<int64_t>(1)));
      AssignAdd(records_, ReduceSum(OnesLike(batch["id"])));
      f.Return("loss", loss);
    }));
    return absl::OkStatus();
  }

  std::unique_ptr<MemoryCluster> cluster_;
  Variable kernel_, steps_, records_;
  EmbeddingTable table_;
  Function step_;
};

TEST(MicroBatches, GiveTheParametersOfWholeBatchesWithEveryOptimizer) {
  for (const testing::ExampleOptimizer& example : testing::ExampleOptimizers()) {
    if (!example.changed.empty()) continue;
    SCOPED_TRACE(example.name);
    const Optimizer optimizer(example.proto);
    MU_ASSERT_OK_AND_ASSIGN(const auto whole, SlicedJob::Start(1, 1, optimizer));
    MU_ASSERT_OK_AND_ASSIGN(const auto sliced, SlicedJob::Start(1, 4, optimizer));
    const std::vector<float> before = whole->Values();
    for (SlicedJob* job : {whole.get(), sliced.get()}) {
      job->Run(4);
      job->Run(kSteps - 4);
    }
    const std::vector<float> a = whole->Values(), b = sliced->Values();
    ASSERT_EQ(a.size(), b.size());
    float moved = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(a[i], b[i], 1e-5) << i;
      moved = std::max(moved, std::abs(a[i] - before[i]));
    }
    EXPECT_GT(moved, 0.01);
    EXPECT_EQ(sliced->StepsAndRecords(), SlicedJob::Counts(kSteps, kRecords));
  }
}

// The same bits, since steps are the same ones in the same order.
TEST(MicroBatches, GoOnFromACheckpointAsIfNothingHadBeen) {
  const Adam adam{.learning_rate = 0.05f};
  MU_ASSERT_OK_AND_ASSIGN(const auto undisturbed, SlicedJob::Start(1, 4, adam));
  for (const uint32_t steps : {3, 2, 4}) undisturbed->Run(steps);
  MU_ASSERT_OK_AND_ASSIGN(const auto disturbed, SlicedJob::Start(1, 4, adam));
  disturbed->c().EnableRecovery(disturbed->cluster().directory() + "/checkpoints");
  disturbed->Run(3);
  MU_ASSERT_OK(disturbed->c().Checkpoint());
  disturbed->Run(2);
  MU_ASSERT_OK(disturbed->cluster().StartServer(0));  // the place is taken: back to the checkpoint
  MU_ASSERT_OK(disturbed->cluster().DrainWorker(0));
  MU_ASSERT_OK(disturbed->cluster().StartWorker(0));
  disturbed->Run(4);
  EXPECT_EQ(disturbed->Values(), undisturbed->Values());
  EXPECT_EQ(disturbed->StepsAndRecords(), SlicedJob::Counts(kSteps, kRecords));
}

// Workers come and go while steps run, and calls are lost and repeated.
TEST(MicroBatches, EachStepCountsOnceWhoeverRunsIt) {
  MU_ASSERT_OK_AND_ASSIGN(const auto job, SlicedJob::Start(3, 4, Sgd{.learning_rate = 0.01f}));
  constexpr uint32_t kEpochs = 6;
  std::vector<RemoteValue> values;
  for (uint32_t i = 0; i < kEpochs; ++i) values.push_back(job->Schedule(kSteps));
  for (const int worker : {0, 1, 2}) {
    MU_ASSERT_OK(job->cluster().DrainWorker(worker));
    MU_ASSERT_OK(job->cluster().StartWorker(worker));
  }
  MU_ASSERT_OK(job->c().Join());
  EXPECT_EQ(job->StepsAndRecords(), SlicedJob::Counts(kEpochs * kSteps, kEpochs * kRecords));
  for (const RemoteValue& value : values) {
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    EXPECT_EQ(result.steps(), kSteps);
  }
}

}  // namespace
}  // namespace mu
