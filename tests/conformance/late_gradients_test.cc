// Gradients that are late, with real processes: what is refused runs again, and is applied once.
#include <numeric>
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using ::testing::Each;
using testing::Numbers;
using testing::TestCluster;
using testing::WaitWhile;
using testing::WriteFile;

constexpr int64_t kRecords = 2000, kBatch = 4;
constexpr int kPartitions = 12;  // spread over all servers

// Each record adds 1 to its row, and each step takes 1 from every element of a variable: as
// gradients, so that they can be late.
struct VisitingJob {
  Variable steps;
  EmbeddingTable visits;
  Function step;

  static absl::StatusOr<VisitingJob> Create(TestCluster& cluster, uint32_t epochs,
                                            const Staleness& staleness) {
    Coordinator& c = cluster.coordinator();
    const std::string file = cluster.directory() + "/numbers.csv";
    WriteFile(file, Numbers(0, kRecords));
    VisitingJob job;
    MU_ASSIGN_OR_RETURN(
        const Dataset data,
        c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(kBatch).Shuffle(500).Epochs(epochs)));
    MU_ASSIGN_OR_RETURN(job.steps, c.CreateVariable({.name = "steps",
                                                     .shape = Shape({kPartitions}),
                                                     .initializer = Constant{0},
                                                     .optimizer = Sgd{.learning_rate = 1},
                                                     .partitioner = FixedShards{kPartitions}}));
    MU_ASSIGN_OR_RETURN(job.visits, c.CreateEmbeddingTable({.name = "visits",
                                                            .rows = kRecords,
                                                            .dim = 1,
                                                            .initializer = Constant{0},
                                                            .optimizer = Sgd{.learning_rate = 1}}));
    MU_ASSIGN_OR_RETURN(job.step, c.DefineFunction("visit", [&](FunctionBuilder& f) {
      const Sym rows = EmbeddingLookup(job.visits, f.NextBatch(data)["id"]);
      f.Minimize(ReduceSum(job.steps) - ReduceSum(rows), {.staleness = staleness});
    }));
    return job;
  }

  void ScheduleAll(Coordinator& c, uint32_t epochs) const {
    for (uint64_t first = 0; first < epochs * kRecords / kBatch; first += 10)
      c.Schedule(step, {.steps = 10});
  }
  void Check(Coordinator& c, uint32_t epochs) const {
    MU_ASSERT_OK(c.Join());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(steps));
    EXPECT_THAT(counted.flat<float>(), Each(-static_cast<float>(epochs * kRecords / kBatch)));
    std::vector<int64_t> ids(kRecords);
    std::iota(ids.begin(), ids.end(), 0);
    MU_ASSERT_OK_AND_ASSIGN(const Tensor visited, c.ReadRows(visits, ids));
    EXPECT_THAT(visited.flat<float>(), Each(static_cast<float>(epochs)));
  }
};

TEST(LateGradients, AreAppliedOnceWhateverIsKilled) {
  constexpr uint32_t kEpochs = 3;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::InfiniteDuration()});
  MU_ASSERT_OK_AND_ASSIGN(const VisitingJob job,
                          VisitingJob::Create(*cluster, kEpochs, {.max = 1}));
  job.ScheduleAll(c, kEpochs);
  const auto wait_for = [&](uint64_t steps) { WaitWhile([&] { return c.Stats().steps < steps; }); };
  for (int kill = 0; kill < 6; ++kill) {
    wait_for(100 + 150 * static_cast<uint64_t>(kill));
    if (kill == 3) {
      MU_ASSERT_OK(c.Checkpoint());
      cluster->KillServer(1);
      MU_ASSERT_OK(cluster->StartServer(1));
      continue;
    }
    cluster->KillWorker(kill % 3);
    MU_ASSERT_OK(cluster->StartWorker(kill % 3));
  }
  ASSERT_LT(c.Stats().steps, kEpochs * kRecords / kBatch)
      << "the job was over before the last kill";
  job.Check(c, kEpochs);
  const StalenessCounts late = c.Stats().staleness;
  EXPECT_LE(late.max, 1u);
  EXPECT_GT(late.refused, 0u) << "three workers at once are late by two now and then";
  EXPECT_GT(late.steps, kEpochs * kRecords / kBatch / 2);
}

TEST(LateGradients, AreCountedWithoutABound) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const VisitingJob job, VisitingJob::Create(*cluster, 1, {}));
  job.ScheduleAll(c, 1);
  job.Check(c, 1);
  const StalenessCounts late = c.Stats().staleness;
  EXPECT_EQ(late.steps, static_cast<uint64_t>(kRecords / kBatch));
  EXPECT_EQ(late.refused, 0u);
  EXPECT_GT(late.max, 0u);
}

}  // namespace
}  // namespace mu
