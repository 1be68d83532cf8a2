// Synchronous rounds with real processes: N small batches equal one of N times the size, whatever
// is killed meanwhile.
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::TestCluster;
using testing::WaitWhile;
using testing::WriteFile;

constexpr int64_t kRecords = 1500, kRows = 300, kDim = 6;
constexpr uint32_t kEpochs = 2, kReplicas = 4, kBatch = 5;

// Scores of rows against a variable that is spread over all servers. Each row has 5 records, so
// most steps of a round have rows of their own. One optimizer counts steps, another rows.
struct ScoringJob {
  Dataset data;
  Variable weights;
  EmbeddingTable table;
  Function step;

  static absl::StatusOr<ScoringJob> Create(TestCluster& cluster, uint32_t batch) {
    Coordinator& c = cluster.coordinator();
    const std::string file = cluster.directory() + "/numbers.csv";
    std::string ids;
    for (int64_t i = 0; i < kRecords; ++i) ids += std::to_string(i % kRows) + "\n";
    WriteFile(file, ids);
    ScoringJob job;
    // A lease is no multiple of a batch: rounds are small at its end.
    MU_ASSIGN_OR_RETURN(
        job.data,
        c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(batch).Shuffle(512).Epochs(kEpochs)));
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
    for (uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
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
};

// What one worker makes of batches of N times the size.
std::vector<float> LargeBatch() {
  std::vector<float> values;
  [&] {
    MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
    MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job, ScoringJob::Create(*cluster, kReplicas * kBatch));
    MU_ASSERT_OK(job.ScheduleAll(cluster->coordinator()));
    MU_ASSERT_OK(cluster->coordinator().Join());
    MU_ASSERT_OK_AND_ASSIGN(values, job.Values(cluster->coordinator()));
  }();
  return values;
}

void ExpectNear(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  ASSERT_FALSE(values.empty());
  float apart = 0;
  for (size_t i = 0; i < values.size(); ++i)
    apart = std::max(apart, std::abs(values[i] - expected[i]));
  EXPECT_LE(apart, 1e-4f);
}

TEST(SyncRounds, EqualTheLargeBatchWhateverIsKilled) {
  const std::vector<float> expected = LargeBatch();
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = kReplicas}));
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::InfiniteDuration()});
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job, ScoringJob::Create(*cluster, kBatch));
  MU_ASSERT_OK(job.ScheduleAll(c));
  const auto wait_for = [&](uint64_t steps) { WaitWhile([&] { return c.Stats().steps < steps; }); };
  for (int kill = 0; kill < 5; ++kill) {
    wait_for(50 + 80 * static_cast<uint64_t>(kill));
    if (kill == 2) {
      MU_ASSERT_OK(c.Checkpoint());
      wait_for(250);
      cluster->KillServer(1);
      MU_ASSERT_OK(cluster->StartServer(1));
    } else {
      cluster->KillWorker(kill % 3);
      MU_ASSERT_OK(cluster->StartWorker(kill % 3));
    }
  }
  ASSERT_LT(c.Stats().steps, kEpochs * kRecords / kBatch)
      << "the job was over before the last kill";
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> values, job.Values(c));
  ExpectNear(values, expected);
  const RuntimeStats stats = c.Stats();
  EXPECT_EQ(stats.samples, kEpochs * kRecords);
  EXPECT_GE(stats.rounds.contributions, stats.steps);
}

// Whoever waits gets what there is, in rounds that are not full.
TEST(SyncRounds, FetchWaitsForNoMoreThanThereIs) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = kReplicas, .backups = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job, ScoringJob::Create(*cluster, kBatch));
  for (int i = 0; i < 3; ++i) MU_ASSERT_OK(c.Schedule(job.step).Fetch().status());
  EXPECT_EQ(c.Stats().rounds.small, 3u);
  EXPECT_THAT(c.SynchronousRounds({}), testing::IsOk()) << "nothing is unfinished";
}

TEST(SyncRounds, AreRefusedWhileFunctionsAreUnfinishedAndWithRecoveryOfSingleServers) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job, ScoringJob::Create(*cluster, kBatch));
  MU_ASSERT_OK(job.ScheduleAll(c));
  EXPECT_THAT(c.SynchronousRounds({.replicas = 2}),
              testing::HasCode(absl::StatusCode::kFailedPrecondition));
  MU_ASSERT_OK(c.Join());
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .recovery = RecoveryMode::kShard});
  EXPECT_THAT(c.SynchronousRounds({.replicas = 2}),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace mu
