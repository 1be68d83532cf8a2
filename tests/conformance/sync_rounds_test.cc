// Synchronous rounds with real processes: N small batches equal one of N times the size, whatever
// is killed meanwhile, and a slow worker holds up no round that has a backup.
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/conformance/scoring_job.h"

namespace mu {
namespace {

using testing::ExpectNear;
using testing::ScoringJob;
using testing::StepsByWorker;
using testing::TestCluster;
using testing::WaitForWorkers;
using testing::WaitWhile;

constexpr uint32_t kEpochs = 2, kReplicas = ScoringJob::kReplicas;

TEST(SyncRounds, EqualTheLargeBatchWhateverIsKilled) {
  const std::vector<float> expected = ScoringJob::LargeBatch(kEpochs);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = kReplicas}));
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::InfiniteDuration()});
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job,
                          ScoringJob::Create(*cluster, ScoringJob::kBatch, kEpochs));
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
  ASSERT_LT(c.Stats().steps, kEpochs * ScoringJob::kRecords / ScoringJob::kBatch)
      << "the job was over before the last kill";
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> values, job.Values(c));
  ExpectNear(values, expected, 1e-4f);
  const RuntimeStats stats = c.Stats();
  EXPECT_EQ(stats.samples, kEpochs * ScoringJob::kRecords);
  EXPECT_GE(stats.rounds.contributions, stats.steps);
}

// The last batch is smaller, so its gradient counts less than those of the others.
TEST(SyncRounds, AverageGradientsByTheRecordsOfTheirBatches) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  const std::string file = cluster->directory() + "/numbers.csv";
  testing::WriteFile(file, testing::Numbers(0, 13));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset data,
                          c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(5).Epochs(1)));
  MU_ASSERT_OK_AND_ASSIGN(
      const Variable value,
      c.CreateVariable({.name = "value", .optimizer = Sgd{.learning_rate = 1}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    f.Minimize(value * ReduceMean(Cast(f.NextBatch(data)["id"], kFloat32)));
  }));
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = 3}));
  for (int i = 0; i < 3; ++i) c.Schedule(step);
  MU_ASSERT_OK(c.Join());
  const RuntimeStats stats = c.Stats();
  EXPECT_EQ(stats.rounds.committed, 1u);
  EXPECT_EQ(stats.rounds.contributions, 3u);
  EXPECT_EQ(stats.samples, 13u);
  MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c.Read(value));
  EXPECT_NEAR(*read.data<float>(), -(5 * 2 + 5 * 7 + 3 * 11) / 13.0, 1e-5)
      << "-(2 + 7 + 11) / 3 is what batches that count the same would give";
}

// Whoever waits gets what there is, in rounds that are not full.
TEST(SyncRounds, FetchWaitsForNoMoreThanThereIs) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = kReplicas, .backups = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job,
                          ScoringJob::Create(*cluster, ScoringJob::kBatch, kEpochs));
  for (int i = 0; i < 3; ++i) MU_ASSERT_OK(c.Schedule(job.step).Fetch().status());
  EXPECT_EQ(c.Stats().rounds.small, 3u);
  EXPECT_THAT(c.SynchronousRounds({}), testing::IsOk()) << "nothing is unfinished";
}

// A round that has a step of the slow worker takes as long as twenty others. It has one when the
// coordinator waits for it; what comes too late runs elsewhere.
TEST(SyncRounds, GoOnWithoutASlowWorkerIfThereIsABackup) {
  constexpr int kRounds = 300;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  MU_ASSERT_OK(cluster->StartWorker(2, {"--slow_down=20"}));
  Coordinator& c = cluster->coordinator();
  WaitForWorkers(c, 3);
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = 2, .backups = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable sum, c.CreateVariable({.name = "sum", .dtype = kInt64}));
  // Some milliseconds, so that what the network adds does not count.
  MU_ASSERT_OK_AND_ASSIGN(const Function work, c.DefineFunction("work", [&](FunctionBuilder& f) {
    Sym x =
        ConstantTensor(Tensor::Of<float>(Shape({256, 256}), std::vector<float>(256 * 256, 1e-3f)));
    for (int i = 0; i < 4; ++i) x = MatMul(x, x);
    AssignAdd(sum, 1);
    f.Return("sum", ReduceSum(x));
  }));
  for (int i = 0; i < 2 * kRounds; ++i) c.Schedule(work);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(sum));
  EXPECT_EQ(counted.data<int64_t>()[0], 2 * kRounds);
  const RuntimeStats stats = c.Stats();
  EXPECT_GT(stats.rounds.late, 0u) << "the slow worker was never asked";
  // A tenth of the time that the others take is that of one or two of its steps. One more for a
  // step of the others that this machine was as slow with.
  EXPECT_LE(StepsByWorker(c)[2], kRounds / 20 / 10 + 2);
}

// A function whose gradient is 1. Its rate grows by a 128th with each update, so what the variable
// has lost says which updates there were.
struct WarmingUp {
  static constexpr uint64_t kWarmup = 128;
  static constexpr int kSteps = 8;
  Coordinator* c = nullptr;
  Variable value, counter;
  Function step;

  static absl::StatusOr<WarmingUp> Create(Coordinator& c) {
    WarmingUp job = {.c = &c};
    MU_ASSIGN_OR_RETURN(job.value,
                        c.CreateVariable({.name = "value", .optimizer = Sgd{.learning_rate = 1}}));
    MU_ASSIGN_OR_RETURN(job.counter, c.CreateVariable({.name = "counter", .dtype = kInt64}));
    MU_ASSIGN_OR_RETURN(job.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
      AssignAdd(job.counter, 1);
      f.Minimize(job.value + 0.0f, {.warmup_steps = kWarmup});
    }));
    return job;
  }
  // Eight steps, in rounds or without; then the updates from `first` on have happened, counted from
  // 1.
  void Train(const RoundRules& rules, int first) {
    MU_ASSERT_OK(c->SynchronousRounds(rules));
    for (int i = 0; i < kSteps; ++i) c->Schedule(step);
    ASSERT_TRUE(testing::Eventually([&] {
      const absl::StatusOr<bool> done = c->Done();
      return !done.ok() || *done;
    })) << "rounds stand still";
    MU_ASSERT_OK(c->Join());
    const int updates = rules.on() ? kSteps / static_cast<int>(rules.replicas) : kSteps;
    for (int update = first; update < first + updates; ++update)
      expected += static_cast<float>(update) / static_cast<float>(kWarmup);
    trained += kSteps;
    MU_ASSERT_OK_AND_ASSIGN(const Tensor read, c->Read(value));
    EXPECT_EQ(*read.data<float>(), -expected);
    MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c->Read(counter));
    EXPECT_EQ(*counted.data<int64_t>(), trained);
  }
  float expected = 0;
  int64_t trained = 0;
};

// Rounds of another size go on with the next number; steps of another mode are counted one by one.
// So are they after a restart.
TEST(SyncRounds, ChangeTheirSizeAndGoOnAfterAnotherMode) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const CheckpointerOptions options = testing::OnRequest(cluster->directory() + "/checkpoints");
  const RoundRules two = {.replicas = 2}, four = {.replicas = 4};
  WarmingUp job;
  {
    Checkpointer checkpointer(&cluster->coordinator(), options);
    MU_ASSERT_OK_AND_ASSIGN(job, WarmingUp::Create(cluster->coordinator()));
    job.Train(two, 1);
    job.Train(four, 5);
    job.Train(two, 7);
    job.Train({}, 25);
    job.Train(four, 33);
    ASSERT_FALSE(::testing::Test::HasFailure());
    EXPECT_EQ(job.c->Stats().rounds.committed, 12u);
    MU_ASSERT_OK(checkpointer.TakeNow().status());
  }
  cluster->DestroyCoordinator();
  MU_ASSERT_OK(cluster->StartCoordinator());
  Checkpointer checkpointer(&cluster->coordinator(), options);
  MU_ASSERT_OK_AND_ASSIGN(WarmingUp again, WarmingUp::Create(cluster->coordinator()));
  again.expected = job.expected;
  again.trained = job.trained;
  MU_ASSERT_OK(again.c->SynchronousRounds(four));
  MU_ASSERT_OK(again.c->Restore().status());
  again.Train(four, 35);
  again.Train(two, 37);
  again.Train({}, 57);
  again.Train(two, 65);
}

// A server that is lost takes all back to the checkpoint, from which rounds go on.
TEST(SyncRounds, ChangeTheirSizeAndGoBackToACheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, testing::OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(WarmingUp job, WarmingUp::Create(c));
  job.Train({.replicas = 2}, 1);
  MU_ASSERT_OK(checkpointer.TakeNow().status());
  job.Train({.replicas = 4}, 5);
  ASSERT_FALSE(::testing::Test::HasFailure());
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  job.Train({.replicas = 4}, 7);
  job.Train({.replicas = 2}, 9);
}

TEST(SyncRounds, AreRefusedWhileFunctionsAreUnfinishedAndWithRecoveryOfSingleServers) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job,
                          ScoringJob::Create(*cluster, ScoringJob::kBatch, kEpochs));
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
