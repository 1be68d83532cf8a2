// Parameter servers that are killed: the coordinator goes on, nothing is lost or repeated.
#include <map>
#include <set>
#include <thread>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"
#include "tests/psserver/frames.h"

namespace mu {
namespace {

using testing::Bytes;
using testing::CheckedJob;
using testing::Losses;
using testing::Numbers;
using testing::StartCounting;
using testing::TestCluster;
using testing::WriteFile;

constexpr int kPartitions = 12;  // spread over all servers

// Every step adds 1 to a counter and the squares of its records to a checksum, both on every
// server.
struct Checked {
  Variable steps, checksum;
  Function step;
};

absl::StatusOr<Checked> CreateChecked(Coordinator& c, const std::string& file, int64_t batch,
                                      uint32_t epochs) {
  Checked checked;
  MU_ASSIGN_OR_RETURN(
      const Dataset data,
      c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(batch).Shuffle(500).Epochs(epochs)));
  for (auto [variable, name] :
       {std::pair{&checked.steps, "steps"}, std::pair{&checked.checksum, "checksum"}}) {
    MU_ASSIGN_OR_RETURN(*variable, c.CreateVariable({.name = name,
                                                     .shape = Shape({kPartitions}),
                                                     .dtype = kInt64,
                                                     .partitioner = FixedShards{kPartitions}}));
  }
  const Tensor ones =
      Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
  MU_ASSIGN_OR_RETURN(checked.step, c.DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(checked.steps, ConstantTensor(ones));
    AssignAdd(checked.checksum, ConstantTensor(ones) * ReduceSum(id * id));
  }));
  return checked;
}

// The same without data.
absl::StatusOr<Checked> CreateUnread(Coordinator& c) {
  Checked checked;
  MU_ASSIGN_OR_RETURN(checked.steps, c.CreateVariable({.name = "steps",
                                                       .shape = Shape({kPartitions}),
                                                       .dtype = kInt64,
                                                       .partitioner = FixedShards{kPartitions}}));
  const Tensor ones =
      Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
  MU_ASSIGN_OR_RETURN(checked.step, c.DefineFunction("step", [&](FunctionBuilder&) {
    AssignAdd(checked.steps, ConstantTensor(ones));
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
      std::this_thread::yield();
    }
    done = c.Done();
  }
  MU_ASSERT_OK(done);
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(kills, 10);
  EXPECT_EQ(Losses(c, pb::ROLE_PSSERVER).size(), 10u);
  uint64_t repeated = 0;
  for (const auto& failure : c.Stats().failures) repeated += failure.steps_repeated;
  EXPECT_GT(repeated, 0u) << "what was rolled back ran again";
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
  Checkpointer checkpointer(&counting.c(),
                            {.directory = counting.cluster->directory() + "/checkpoints"});
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
  const std::vector<MemberFailure> failures = counting.c().Stats().failures;
  EXPECT_EQ(failures.size(), 2u);
  for (const MemberFailure& failure : failures)
    EXPECT_EQ(failure.steps_repeated, 0u) << "the checkpoint holds them all";
}

// The values of a variable and of table rows as a worker reads them.
absl::StatusOr<std::vector<float>> ReadOnWorker(Coordinator& c, const Function& read) {
  const RemoteValue value = c.Schedule(read);
  MU_RETURN_IF_ERROR(c.Join());
  MU_ASSIGN_OR_RETURN(const FunctionResult result, value.Fetch());
  std::vector<float> all;
  for (const char* name : {"weights", "rows"}) {
    MU_ASSIGN_OR_RETURN(const Tensor tensor, result.Get(0, name));
    for (const float x : tensor.flat<float>()) all.push_back(x);
  }
  return all;
}

TEST(Conformance, PsKilledBeforeFirstCheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = counting.c();
  MU_ASSERT_OK_AND_ASSIGN(const Variable prepared,
                          c.CreateVariable({.name = "prepared", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Variable weights,
                          c.CreateVariable({.name = "weights",
                                            .shape = Shape({64, 8}),
                                            .initializer = Normal{.stddev = 0.1f},
                                            .partitioner = FixedShards{kPartitions}}));
  MU_ASSERT_OK_AND_ASSIGN(
      const EmbeddingTable items,
      c.CreateEmbeddingTable(
          {.name = "items", .rows = 1000, .dim = 8, .initializer = Normal{.stddev = 0.1f}}));
  std::vector<int64_t> ids;  // of all partitions
  for (int64_t id = 0; id < 1000; id += 7) ids.push_back(id);
  MU_ASSERT_OK_AND_ASSIGN(const Function read, c.DefineFunction("read", [&](FunctionBuilder& f) {
    f.Return("weights", Read(weights));
    const Shape shape({static_cast<int64_t>(ids.size())});
    f.Return("rows", EmbeddingLookup(items, ConstantTensor(Tensor::Of<int64_t>(shape, ids))));
  }));
  // Before recovery is enabled
  MU_ASSERT_OK(c.Assign(prepared, Tensor::Scalar<int64_t>(5)));
  Checkpointer checkpointer(&c, {.directory = counting.cluster->directory() + "/checkpoints"});
  MU_ASSERT_OK(c.Assign(counting.counter, counting.All(1000)));
  const RemoteValue early = c.Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> initial, ReadOnWorker(c, read));
  EXPECT_GT(std::set<float>(initial.begin(), initial.end()).size(), initial.size() * 9 / 10)
      << "they are random";
  for (int server = 0; server < 2; ++server) {
    counting.cluster->KillServer(server);
    MU_ASSERT_OK(counting.cluster->StartServer(server));
  }
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> again, ReadOnWorker(c, read));
  EXPECT_EQ(Bytes(again), Bytes(initial)) << "bit for bit";
  c.Schedule(counting.count, {.steps = 5});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(counting.Count(), 1015) << "the assignment and the first function were repeated";
  MU_ASSERT_OK_AND_ASSIGN(const Tensor prepared_value, c.Read(prepared));
  EXPECT_EQ(*prepared_value.data<int64_t>(), 5);
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, early.Fetch());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor first, result.Get(0, "before"));
  EXPECT_EQ(*first.data<int64_t>(), 1000) << "a fetched value stays as it was";
  EXPECT_EQ(checkpointer.taken(), 0u);
  const auto failures = c.Stats().failures;  // as the report has them
  ASSERT_EQ(failures.size(), 2u);
  for (const MemberFailure& failure : failures)
    EXPECT_THAT(failure.message, ::testing::HasSubstr("restored from initial values"));
}

// Of a cluster that is not complete yet: nothing can be lost.
TEST(Conformance, PsKilledWhileTheClusterGathers) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          TestCluster::Start({.workers = 1, .ps = 2, .gathers = true}));
  Coordinator& c = cluster->coordinator();
  const auto start = [&](int server, size_t registered) {
    MU_ASSERT_OK(cluster->StartServer(server));
    testing::WaitWhile([&] { return c.Counts().servers != registered; });
  };
  start(0, 1);
  cluster->KillServer(0);
  testing::WaitWhile([&] { return c.Counts().servers != 0; });
  start(0, 1);
  EXPECT_EQ(cluster->TerminateServer(0).code, 0);
  testing::WaitWhile([&] { return c.Counts().servers != 0; });
  start(0, 1);
  start(1, 2);
  MU_ASSERT_OK(cluster->StartWorker(0));
  MU_ASSERT_OK(c.WaitForCluster(1));
  EXPECT_THAT(Losses(c, pb::ROLE_PSSERVER), ::testing::ElementsAre("died", "left"));
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints"});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 400}));
  job.ScheduleAll(10);
  job.JoinAndCheck();
}

// All that a checkpointer of these tests does of itself.
CheckpointerOptions EverySteps(const TestCluster& cluster, uint64_t steps) {
  return {.directory = cluster.directory() + "/checkpoints",
          .every = absl::InfiniteDuration(),
          .every_steps = steps,
          .keep = 2};
}

// Stops a server and returns when both workers wait for its answer: they have functions, and none
// of their steps, which take milliseconds, ends. What is killed then is killed in the
// middle of their calls.
void StopInTheMiddleOfCalls(TestCluster* cluster, int server) {
  Coordinator& c = cluster->coordinator();
  cluster->StopServer(server);
  uint64_t steps = 0;
  do {
    steps = c.Stats().steps;
  } while (testing::Eventually([&] { return c.Stats().steps != steps; }, absl::Milliseconds(200)));
  for (int worker = 0; worker < 2; ++worker)
    EXPECT_GT(testing::InFlight(c, worker), 0u) << "worker " << worker << " has nothing to do";
}

// Steps that call no server but by pushing.
TEST(Conformance, PsKilledMidPush) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(&cluster->coordinator(), EverySteps(*cluster, 200));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(50);
  for (const int victim : {0, 1, 0}) {
    job.WaitForSteps(cluster->coordinator().Stats().steps + 150);
    StopInTheMiddleOfCalls(cluster.get(), victim);
    cluster->KillServer(victim);
    MU_ASSERT_OK(cluster->StartServer(victim));
  }
  job.JoinAndCheck();
  EXPECT_THAT(Losses(cluster->coordinator(), pb::ROLE_PSSERVER),
              ::testing::ElementsAre("died", "died", "died"));
}

// Steps that call no server but by pulling: 4 MB of a variable that never changes.
TEST(Conformance, PsKilledMidPull) {
  constexpr int64_t kValues = 1'000'000;
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Coordinator& c = counting.c();
  Checkpointer checkpointer(&c, {.directory = counting.cluster->directory() + "/checkpoints"});
  MU_ASSERT_OK_AND_ASSIGN(const Variable large, c.CreateVariable({.name = "large",
                                                                  .shape = Shape({kValues}),
                                                                  .partitioner = FixedShards{8}}));
  MU_ASSERT_OK_AND_ASSIGN(const Function sum, c.DefineFunction("sum", [&](FunctionBuilder& f) {
    f.Return("sum", ReduceSum(Read(large)));
  }));
  MU_ASSERT_OK(
      c.Assign(large, Tensor::Of<float>(Shape({kValues}), std::vector<float>(kValues, 1))));
  std::vector<RemoteValue> sums;
  for (int i = 0; i < 20; ++i) sums.push_back(c.Schedule(sum, {.steps = 10}));
  while (c.Stats().steps < 30) std::this_thread::yield();
  StopInTheMiddleOfCalls(counting.cluster.get(), 1);
  counting.cluster->KillServer(1);
  MU_ASSERT_OK(counting.cluster->StartServer(1));
  MU_ASSERT_OK(c.Join());
  for (const RemoteValue& value : sums) {
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    ASSERT_EQ(result.steps(), 10u);
    for (size_t step = 0; step < 10; ++step) {
      MU_ASSERT_OK_AND_ASSIGN(const Tensor total, result.Get(step, "sum"));
      ASSERT_EQ(*total.data<float>(), kValues)
          << "a value that no checkpoint held was assigned again, before others read";
    }
  }
  EXPECT_EQ(Losses(c, pb::ROLE_PSSERVER).size(), 1u);
}

// `recovery: shard`: the other servers keep all that they have, finished functions do not run
// again, and the ledger says what was lost.
TEST(Conformance, RecoveryShardKeepsTheOthers) {
  constexpr int64_t kSteps = 1000;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .keep = 0,
                                 .recovery = RecoveryMode::kShard});
  MU_ASSERT_OK_AND_ASSIGN(const Checked checked, CreateUnread(c));
  for (int64_t i = 0; i < 200 / 20; ++i) c.Schedule(checked.step, {.steps = 20});
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK(checkpointer.TakeNow());
  for (int64_t i = 200 / 20; i < kSteps / 20; ++i) c.Schedule(checked.step, {.steps = 20});
  while (c.Stats().steps < 500) std::this_thread::yield();
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(c.Stats().steps, static_cast<uint64_t>(kSteps));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(checked.steps));
  std::map<int64_t, int> values;
  for (const int64_t value : counted.flat<int64_t>()) ++values[value];
  ASSERT_EQ(values.size(), 2u) << "one value per server";
  EXPECT_EQ(values.rbegin()->first, kSteps) << "who was not lost has everything, once";
  const int64_t missing = kSteps - values.begin()->first;
  EXPECT_GT(missing, 0);
  EXPECT_LE(missing, kSteps - 200);
  const RuntimeStats stats = c.Stats();
  ASSERT_EQ(stats.failures.size(), 1u);
  EXPECT_EQ(stats.failures[0].steps_repeated, 0u);
  EXPECT_EQ(stats.failures[0].updates_rolled_back, missing * values.begin()->second)
      << "each lost step changed each partition of the lost server";
}

// What finished before an error is repeated although its ids are below those that the error
// cancelled.
TEST(Conformance, PsKilledAfterAnError) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Coordinator& c = counting.c();
  Checkpointer checkpointer(&c, EverySteps(*counting.cluster, 1'000'000));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, testing::DefineLog(c, "log"));
  for (int i = 0; i < 5; ++i) c.Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(c.Join());
  c.Schedule(log, {.args = {{"x", -1.0}}});
  EXPECT_THAT(c.Join(), testing::HasCode(absl::StatusCode::kInvalidArgument));
  for (int i = 0; i < 5; ++i) c.Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(c.Join());
  counting.cluster->KillServer(0);
  MU_ASSERT_OK(counting.cluster->StartServer(0));
  MU_ASSERT_OK(c.Join());  // waits for the repeats
  EXPECT_EQ(counting.Count(), 100);
}

// A function fails while what a lost server took with it is repeated.
TEST(Conformance, UserErrorWhilePsIsRecovered) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Coordinator& c = counting.c();
  Checkpointer checkpointer(&c, EverySteps(*counting.cluster, 1'000'000));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, testing::DefineLog(c, "log"));
  for (int i = 0; i < 20; ++i) c.Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(c.Join());
  counting.cluster->KillServer(0);
  const RemoteValue bad = c.Schedule(log, {.args = {{"x", -1.0}}});
  c.Schedule(counting.count, {.steps = 1000});
  MU_ASSERT_OK(counting.cluster->StartServer(0));
  EXPECT_THAT(c.Join(), testing::HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(bad.Fetch(), testing::HasCode(absl::StatusCode::kInvalidArgument));
  MU_ASSERT_OK(c.Join());  // waits for the repeats
  std::vector<int64_t> counts = counting.Counts();
  EXPECT_THAT(counts, ::testing::Each(::testing::Ge(200))) << "what had finished was repeated";
  EXPECT_THAT(counts, ::testing::Each(::testing::Le(1200))) << "and no more than was asked for";
  const RemoteValue next = c.Schedule(counting.count, {.steps = 10});
  MU_ASSERT_OK(c.Join());
  MU_EXPECT_OK(next.Fetch());
  for (int64_t& count : counts) count += 10;
  EXPECT_EQ(counting.Counts(), counts);
}

TEST(Conformance, EveryPsKilled) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(
      &counting.c(),
      {.directory = counting.cluster->directory() + "/checkpoints", .every_steps = 100});
  for (int i = 0; i < 50; ++i) counting.c().Schedule(counting.count, {.steps = 20});
  while (counting.c().Stats().steps < 250) std::this_thread::yield();
  for (int server = 0; server < 2; ++server) counting.cluster->KillServer(server);
  for (int server = 0; server < 2; ++server) MU_ASSERT_OK(counting.cluster->StartServer(server));
  MU_ASSERT_OK(counting.c().Join());
  EXPECT_EQ(counting.Count(), 1000);
  EXPECT_EQ(Losses(counting.c(), pb::ROLE_PSSERVER).size(), 2u);
}

TEST(Conformance, PsKilledWhileAWorkerRecovers) {
  MU_ASSERT_OK_AND_ASSIGN(auto counting, StartCounting({.workers = 2, .ps = 2}));
  Checkpointer checkpointer(
      &counting.c(),
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
  EXPECT_EQ(Losses(counting.c(), pb::ROLE_PSSERVER).size(), 2u);
}

}  // namespace
}  // namespace mu
