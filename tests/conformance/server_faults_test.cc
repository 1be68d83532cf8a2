// Parameter servers that are killed: the coordinator goes on, nothing is lost or repeated.
#include <thread>

#include "absl/time/clock.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::Numbers;
using testing::StartCounting;
using testing::TestCluster;
using testing::WriteFile;

constexpr int kPartitions = 12;  // spread over all servers

// Every step adds 1 to a counter and the squares of its records to a checksum, both on every server.
struct Checked {
  Variable steps, checksum;
  Function step;
};

absl::StatusOr<Checked> CreateChecked(Coordinator& c, const std::string& file, int64_t batch, uint32_t epochs) {
  Checked checked;
  MU_ASSIGN_OR_RETURN(const Dataset data,
                      c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(batch).Shuffle(500).Epochs(epochs)));
  for (auto [variable, name] : {std::pair{&checked.steps, "steps"}, std::pair{&checked.checksum, "checksum"}}) {
    MU_ASSIGN_OR_RETURN(*variable, c.CreateVariable({.name = name,
                                                     .shape = Shape({kPartitions}),
                                                     .dtype = kInt64,
                                                     .partitioner = FixedShards{kPartitions}}));
  }
  const Tensor ones = Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
  MU_ASSIGN_OR_RETURN(checked.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(checked.steps, ConstantTensor(ones));
    AssignAdd(checked.checksum, ConstantTensor(ones) * ReduceSum(id * id));
  }));
  return checked;
}

TEST(Conformance, ExactlyOnceAcrossRestore) {
  constexpr int64_t kRecords = 4000, kBatch = 4;
  constexpr uint32_t kEpochs = 4;
  constexpr int64_t kSteps = kEpochs * kRecords / kBatch;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 3}));
  Coordinator& c = cluster->coordinator();
  WriteFile(cluster->directory() + "/data.csv", Numbers(0, kRecords));
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .every_steps = 300,
                                 .keep = 2});
  MU_ASSERT_OK_AND_ASSIGN(const Checked checked,
                          CreateChecked(c, cluster->directory() + "/data.csv", kBatch, kEpochs));
  for (int64_t i = 0; i < kSteps / 20; ++i) c.Schedule(checked.step, {.steps = 20});
  int kills = 0;
  uint64_t next_kill = 200;
  absl::StatusOr<bool> done = false;
  while (done.ok() && !*done) {
    if (c.Stats().steps >= next_kill && kills < 10) {
      const int victim = kills++ % 3;
      cluster->KillServer(victim);
      MU_ASSERT_OK(cluster->StartServer(victim));
      next_kill = c.Stats().steps + 250;
    } else {
      absl::SleepFor(absl::Milliseconds(1));  // between two looks at the progress
    }
    done = c.Done();
  }
  MU_ASSERT_OK(done);
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(kills, 10);
  EXPECT_GT(checkpointer.taken(), 0u);
  EXPECT_EQ(c.Stats().steps, static_cast<uint64_t>(kSteps)) << "each result is delivered once";
  int64_t squares = 0;
  for (int64_t i = 0; i < kRecords; ++i) squares += i * i;
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(checked.steps));
  EXPECT_THAT(counted.flat<int64_t>(), ::testing::Each(kSteps));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor summed, c.Read(checked.checksum));
  EXPECT_THAT(summed.flat<int64_t>(), ::testing::Each(squares * static_cast<int64_t>(kEpochs)));
}

TEST(Conformance, PsKilledIdle) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(&counting.c(), {.directory = counting.cluster->directory() + "/checkpoints"});
  for (int i = 0; i < 5; ++i) counting.c().Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(counting.c().Join());
  MU_ASSERT_OK(checkpointer.TakeNow());
  for (int server = 0; server < 2; ++server) {
    counting.cluster->KillServer(server);
    MU_ASSERT_OK(counting.cluster->StartServer(server));
  }
  counting.c().Schedule(counting.count, {.steps = 7});
  MU_ASSERT_OK(counting.c().Join());
  EXPECT_EQ(counting.Count(), 57);
}

TEST(Conformance, PsKilledBeforeFirstCheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 1, .ps = 2}));
  Checkpointer checkpointer(&counting.c(), {.directory = counting.cluster->directory() + "/checkpoints"});
  MU_ASSERT_OK(counting.c().Assign(counting.counter, Tensor::Scalar<int64_t>(1000)));
  const RemoteValue early = counting.c().Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(counting.c().Join());
  for (int server = 0; server < 2; ++server) {
    counting.cluster->KillServer(server);
    MU_ASSERT_OK(counting.cluster->StartServer(server));
  }
  counting.c().Schedule(counting.count, {.steps = 5});
  MU_ASSERT_OK(counting.c().Join());
  EXPECT_EQ(counting.Count(), 1015) << "the assignment and the first function were repeated";
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, early.Fetch());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor first, result.Get(0, "before"));
  EXPECT_EQ(*first.data<int64_t>(), 1000) << "a fetched value stays as it was";
  EXPECT_EQ(checkpointer.taken(), 0u);
}

TEST(Conformance, EveryPsKilled) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(&counting.c(),
                            {.directory = counting.cluster->directory() + "/checkpoints", .every_steps = 100});
  for (int i = 0; i < 50; ++i) counting.c().Schedule(counting.count, {.steps = 20});
  while (counting.c().Stats().steps < 250) std::this_thread::yield();
  for (int server = 0; server < 2; ++server) counting.cluster->KillServer(server);
  for (int server = 0; server < 2; ++server) MU_ASSERT_OK(counting.cluster->StartServer(server));
  MU_ASSERT_OK(counting.c().Join());
  EXPECT_EQ(counting.Count(), 1000);
}

TEST(Conformance, PsKilledWhileAWorkerRecovers) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(&counting.c(),
                            {.directory = counting.cluster->directory() + "/checkpoints", .every_steps = 100});
  for (int i = 0; i < 50; ++i) counting.c().Schedule(counting.count, {.steps = 20});
  while (counting.c().Stats().steps < 150) std::this_thread::yield();
  counting.cluster->KillWorker(0);
  counting.cluster->KillServer(1);
  MU_ASSERT_OK(counting.cluster->StartServer(1));
  MU_ASSERT_OK(counting.cluster->StartWorker(0));
  while (counting.c().Stats().steps < 500) std::this_thread::yield();
  counting.cluster->KillServer(0);
  counting.cluster->KillWorker(1);
  MU_ASSERT_OK(counting.cluster->StartWorker(1));
  MU_ASSERT_OK(counting.cluster->StartServer(0));
  MU_ASSERT_OK(counting.c().Join());
  EXPECT_EQ(counting.Count(), 1000);
}

}  // namespace
}  // namespace mu
