// A job whose synchronous rounds equal batches of so many times the size, for the tests of that.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu::testing {

// Scores of rows against a variable that is spread over all servers. Each row has 5 records, so
// most steps of a round have rows of their own. One optimizer counts steps, another rows.
struct ScoringJob {
  static constexpr int64_t kRecords = 1500, kRows = 300, kDim = 6;
  static constexpr uint32_t kReplicas = 4, kBatch = 5;  // of a round
  static constexpr uint32_t kLeases = 4;                // of an epoch

  Dataset data;
  Variable weights;
  EmbeddingTable table;
  Function step;
  uint32_t epochs = 0;

  static absl::StatusOr<ScoringJob> Create(TestCluster& cluster, uint32_t batch, uint32_t epochs) {
    Coordinator& c = cluster.coordinator();
    const std::string file = cluster.directory() + "/numbers.csv";
    std::string ids;
    for (int64_t i = 0; i < kRecords; ++i) ids += std::to_string(i % kRows) + "\n";
    WriteFile(file, ids);
    ScoringJob job = {.epochs = epochs};
    // Four leases, which are no multiples of a round: the last one of each lease is small.
    MU_ASSIGN_OR_RETURN(
        job.data,
        c.CreateDataset(
            Csv({file}).Id("id", 0, 0).Batch(batch).Shuffle(512).BlockRecords(130).Epochs(epochs)));
    MU_ASSIGN_OR_RETURN(job.weights, c.CreateVariable({.name = "weights",
                                                       .shape = Shape({kDim}),
                                                       .initializer = Uniform{-1, 1},
                                                       .optimizer = Adam{.learning_rate = 0.01f},
                                                       .partitioner = FixedShards{kDim}}));
    MU_ASSIGN_OR_RETURN(job.table,
                        c.CreateEmbeddingTable({.name = "table",
                                                .rows = kRows,
                                                .dim = kDim,
                                                .initializer = Uniform{-1, 1},
                                                .optimizer = Adagrad{.learning_rate = 0.1f}}));
    MU_ASSIGN_OR_RETURN(job.step, c.DefineFunction("score", [&](FunctionBuilder& f) {
      const Sym rows = EmbeddingLookup(job.table, f.NextBatch(job.data)["id"]);
      const Sym loss = ReduceMean(Square(ReduceSum(rows * job.weights, {1}) - 1.0f));
      f.Minimize(loss, {.schedule = PolynomialDecay{.steps = 100, .end_factor = 0.2f}});
      f.Return("loss", loss);
    }));
    return job;
  }
  // All functions of all epochs.
  absl::Status ScheduleAll(Coordinator& c) const {
    for (uint64_t epoch = 0; epoch < epochs; ++epoch) {
      MU_ASSIGN_OR_RETURN(const uint64_t batches, c.BatchesInEpoch(data, epoch));
      for (uint64_t i = 0; i < batches; ++i) c.Schedule(step);
    }
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<float>> Values(Coordinator& c) const {
    MU_ASSIGN_OR_RETURN(const Tensor dense, c.Read(weights));
    std::vector<int64_t> ids(kRows);
    std::iota(ids.begin(), ids.end(), 0);
    MU_ASSIGN_OR_RETURN(const Tensor rows, c.ReadRows(table, ids));
    std::vector<float> values(dense.flat<float>().begin(), dense.flat<float>().end());
    values.insert(values.end(), rows.flat<float>().begin(), rows.flat<float>().end());
    return values;
  }

  // What one worker makes of batches of kReplicas times the size.
  static std::vector<float> LargeBatch(uint32_t epochs) {
    std::vector<float> values;
    [&] {
      MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
      MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job,
                              ScoringJob::Create(*cluster, kReplicas * kBatch, epochs));
      MU_ASSERT_OK(job.ScheduleAll(cluster->coordinator()));
      MU_ASSERT_OK(cluster->coordinator().Join());
      MU_ASSERT_OK_AND_ASSIGN(values, job.Values(cluster->coordinator()));
    }();
    return values;
  }
};

inline void ExpectNear(const std::vector<float>& values, const std::vector<float>& expected,
                       float tolerance) {
  ASSERT_EQ(values.size(), expected.size());
  ASSERT_FALSE(values.empty());
  float apart = 0;
  for (size_t i = 0; i < values.size(); ++i)
    apart = std::max(apart, std::abs(values[i] - expected[i]));
  EXPECT_LE(apart, tolerance);
  ::testing::Test::RecordProperty("apart", std::to_string(apart));
}

}  // namespace mu::testing
