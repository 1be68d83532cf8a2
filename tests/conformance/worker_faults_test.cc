// Workers that are killed. (The rest of the faults comes with the recovery of servers.)
#include <thread>

#include "absl/time/clock.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::TestCluster;
using testing::WriteFile;

TEST(Conformance, UpdateAppliedExactlyOnce) {
  constexpr int64_t kRecords = 4000;
  constexpr int64_t kBatch = 4;
  constexpr uint32_t kEpochs = 4;
  constexpr int64_t kSteps = kEpochs * kRecords / kBatch;
  constexpr int kPartitions = 12;  // spread over all servers
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 3}));
  Coordinator& c = cluster->coordinator();
  WriteFile(cluster->directory() + "/data.csv", Numbers(0, kRecords));
  MU_ASSERT_OK_AND_ASSIGN(
      const Dataset data,
      c.CreateDataset(Csv({cluster->directory() + "/data.csv"}).Id("id", 0, 0).Batch(kBatch).Shuffle(500).Epochs(kEpochs)));
  const auto create = [&](const char* name) {
    return c.CreateVariable({.name = name,
                             .shape = Shape({kPartitions}),
                             .dtype = kInt64,
                             .partitioner = FixedShards{kPartitions}});
  };
  MU_ASSERT_OK_AND_ASSIGN(const Variable steps, create("steps"));
  MU_ASSERT_OK_AND_ASSIGN(const Variable checksum, create("checksum"));
  const Tensor ones = Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(steps, ConstantTensor(ones));
    AssignAdd(checksum, ConstantTensor(ones) * ReduceSum(id * id));
    f.Return("records", Count(id));
  }));
  for (int64_t i = 0; i < kSteps / 20; ++i) c.Schedule(step, {.steps = 20});

  // Kills come with progress, so that each of them finds steps under way.
  int kills = 0;
  uint64_t next_kill = 50;
  absl::StatusOr<bool> done = false;
  while (done.ok() && !*done) {
    if (c.Stats().steps >= next_kill && kills < 10) {
      const int victim = kills++ % 2;
      cluster->KillWorker(victim);
      MU_ASSERT_OK(cluster->StartWorker(victim));
      next_kill = c.Stats().steps + 150;
    } else {
      absl::SleepFor(absl::Milliseconds(1));
    }
    done = c.Done();
  }
  MU_ASSERT_OK(done);
  MU_ASSERT_OK(c.Join());
  EXPECT_GE(kills, 5);
  EXPECT_EQ(c.Stats().steps, static_cast<uint64_t>(kSteps));
  int64_t squares = 0;
  for (int64_t i = 0; i < kRecords; ++i) squares += i * i;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(steps));
  EXPECT_THAT(counted.flat<int64_t>(), ::testing::Each(kSteps));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor summed, c.Read(checksum));
  EXPECT_THAT(summed.flat<int64_t>(), ::testing::Each(squares * static_cast<int64_t>(kEpochs)));
}

}  // namespace
}  // namespace mu
