// A program that begins with the values of another run's checkpoint.
#include <string>

#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::OnRequest;
using testing::StartCounting;
using testing::TestCluster;

// A checkpoint remembers which steps of which functions it holds. Those of this run have ids of
// their own: none of their steps is taken for one of the other run's.
TEST(Conformance, TrainsOnFromAnotherRunsCheckpoint) {
  std::string checkpoint;
  MU_ASSERT_OK_AND_ASSIGN(auto first, StartCounting({.workers = 1, .ps = 2}));
  {
    Checkpointer checkpointer(&first.c(), OnRequest(first.cluster->directory() + "/checkpoints"));
    for (int i = 0; i < 20; ++i) first.c().Schedule(first.count, {.steps = 5});
    MU_ASSERT_OK_AND_ASSIGN(checkpoint, checkpointer.TakeWhole());
  }
  MU_ASSERT_OK_AND_ASSIGN(auto second, StartCounting({.workers = 1, .ps = 2}));
  Coordinator& c = second.c();
  Checkpointer checkpointer(&c, OnRequest(second.cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK(c.Restore(checkpoint));
  EXPECT_EQ(second.Count(), 100);
  for (int i = 0; i < 10; ++i) c.Schedule(second.count, {.steps = 5});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(second.Count(), 150);
  // Servers that go back to it repeat what this run did, and only that.
  second.cluster->KillServer(0);
  MU_ASSERT_OK(second.cluster->StartServer(0));
  for (int i = 0; i < 30; ++i) c.Schedule(second.count, {.steps = 5});
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(second.Count(), 300);
  // The same for assignments, which have ids as well.
  MU_ASSERT_OK(c.Restore(checkpoint));
  MU_ASSERT_OK(c.Assign(second.counter, second.All(7)));
  EXPECT_EQ(second.Count(), 7);
}

TEST(Conformance, TheFirstThingAfterAWarmStartMayBeAnAssignment) {
  std::string checkpoint;
  MU_ASSERT_OK_AND_ASSIGN(auto first, StartCounting());
  {
    Checkpointer checkpointer(&first.c(), OnRequest(first.cluster->directory() + "/checkpoints"));
    first.c().Schedule(first.count, {.steps = 5});
    MU_ASSERT_OK_AND_ASSIGN(checkpoint, checkpointer.TakeWhole());
  }
  MU_ASSERT_OK_AND_ASSIGN(auto second, StartCounting());
  MU_ASSERT_OK(second.c().Restore(checkpoint));
  MU_ASSERT_OK(second.c().Assign(second.counter, second.All(7)));
  EXPECT_EQ(second.Count(), 7);
}

// Some values under other names, the rest new. Steps of the other job are not remembered, and a
// server that is lost before there is a checkpoint goes back to these values, not to initial ones.
TEST(Conformance, BeginsWithSomeValuesOfAnotherModel) {
  std::string checkpoint;
  const EmbeddingTableSpec users = {.name = "user", .rows = 100, .dim = 4, .initializer = Normal{}};
  std::vector<int64_t> ids(100);
  for (int64_t i = 0; i < 100; ++i) ids[static_cast<size_t>(i)] = i;
  std::vector<float> trained;
  {
    MU_ASSERT_OK_AND_ASSIGN(auto first, StartCounting({.workers = 1, .ps = 2}));
    MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table, first.c().CreateEmbeddingTable(users));
    MU_ASSERT_OK_AND_ASSIGN(
        const Function train, first.c().DefineFunction("train", [&](FunctionBuilder& f) {
          f.Minimize(ReduceSum(
              Square(EmbeddingLookup(table, ConstantTensor(Tensor::Of<int64_t>({3}, {1, 5, 7}))))));
        }));
    Checkpointer checkpointer(&first.c(), OnRequest(first.cluster->directory() + "/checkpoints"));
    first.c().Schedule(train, {.steps = 3});
    first.c().Schedule(first.count, {.steps = 50});
    MU_ASSERT_OK_AND_ASSIGN(checkpoint, checkpointer.TakeWhole());
    MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, first.c().ReadRows(table, ids));
    trained.assign(rows.flat<float>().begin(), rows.flat<float>().end());
    // Only while the first cluster lives is its checkpoint there.
    MU_ASSERT_OK_AND_ASSIGN(auto second, StartCounting({.workers = 1, .ps = 2, .seed = 9}));
    Coordinator& c = second.c();
    EmbeddingTableSpec renamed = users;
    renamed.name = "member";
    MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable member, c.CreateEmbeddingTable(renamed));
    renamed.name = "item";
    MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable item, c.CreateEmbeddingTable(renamed));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor initial, c.ReadRows(item, ids));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor other_rows, c.ReadRows(member, ids));
    Checkpointer second_checkpointer(&c, OnRequest(second.cluster->directory() + "/checkpoints"));
    const absl::Status wrong = c.WarmStart(checkpoint, {.map = {{"user", "members"}}}).status();
    EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
    MU_ASSERT_OK_AND_ASSIGN(const pb::TakenValuesProto taken,
                            c.WarmStart(checkpoint, {.map = {{"user", "member"}}}));
    EXPECT_EQ(taken.names_size(), 1);
    const auto check = [&] {
      MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, c.ReadRows(member, ids));
      // Rows that the other model has not touched have the initial values of this one.
      for (int64_t id = 0; id < 100; ++id) {
        const bool touched = id == 1 || id == 5 || id == 7;
        for (int64_t d = 0; d < 4; ++d) {
          const int64_t at = id * 4 + d;
          EXPECT_EQ(rows.flat<float>()[at], touched ? trained[at] : other_rows.flat<float>()[at])
              << id;
        }
      }
      MU_ASSERT_OK_AND_ASSIGN(const Tensor items, c.ReadRows(item, ids));
      EXPECT_EQ(items.flat<float>(), initial.flat<float>());
    };
    check();
    EXPECT_EQ(second.Count(), 0) << "it was not named";
    for (int i = 0; i < 10; ++i) c.Schedule(second.count, {.steps = 5});
    MU_ASSERT_OK(c.Join());
    EXPECT_EQ(second.Count(), 50) << "the other job's steps are not this one's";
    second.cluster->KillServer(0);
    MU_ASSERT_OK(second.cluster->StartServer(0));
    c.Schedule(second.count, {.steps = 5});
    MU_ASSERT_OK(c.Join());
    EXPECT_EQ(second.Count(), 55);
    check();
    EXPECT_EQ(c.WarmStart(checkpoint, {.map = {{"user", "member"}}}).status().code(),
              absl::StatusCode::kFailedPrecondition);
  }
}

// A table of a cluster of its own, whose rows a step makes smaller.
struct ShrinkingRows {
  RoundRules rules;
  std::unique_ptr<TestCluster> cluster;
  EmbeddingTable table;
  Function train;

  static absl::StatusOr<ShrinkingRows> Start(const Optimizer& optimizer, const RoundRules& rules) {
    ShrinkingRows rows{.rules = rules};
    MU_ASSIGN_OR_RETURN(rows.cluster, TestCluster::Start({.default_optimizer = optimizer}));
    Coordinator& c = rows.cluster->coordinator();
    MU_RETURN_IF_ERROR(c.SynchronousRounds(rules));
    MU_ASSIGN_OR_RETURN(
        rows.table,
        c.CreateEmbeddingTable({.name = "rows", .rows = 10, .dim = 2, .initializer = Normal{}}));
    MU_ASSIGN_OR_RETURN(rows.train, c.DefineFunction("train", [&](FunctionBuilder& f) {
      f.Minimize(ReduceSum(
          Square(EmbeddingLookup(rows.table, ConstantTensor(Tensor::Of<int64_t>({2}, {1, 3}))))));
    }));
    return rows;
  }
  Coordinator& c() const { return cluster->coordinator(); }
  // Each function has a step in each round.
  absl::StatusOr<Tensor> After(uint32_t updates) const {
    const uint32_t functions = rules.on() ? rules.replicas : 1;
    for (uint32_t i = 0; i < functions; ++i) c().Schedule(train, {.steps = updates});
    MU_RETURN_IF_ERROR(c().Join());
    return c().ReadRows(table, std::vector<int64_t>{0, 1, 2, 3});
  }
};

// Adam's moments are those of its step: with them the count of steps goes on, as after Restore. In
// synchronous rounds it is the count of rounds.
TEST(Conformance, AWarmStartWithSlotsGoesOnWithTheNextStep) {
  const std::pair<const char*, Optimizer> optimizers[] = {
      {"adam", Adam{.learning_rate = 0.01f}},
      {"adamw", AdamW{.learning_rate = 0.01f}},
      {"rmsprop", Rmsprop{.learning_rate = 0.01f, .momentum = 0.9f}}};
  for (const RoundRules& rules : {RoundRules{}, RoundRules{.replicas = 2}}) {
    for (const auto& [name, optimizer] : optimizers) {
      SCOPED_TRACE(absl::StrCat(name, ", replicas: ", rules.replicas));
      MU_ASSERT_OK_AND_ASSIGN(const auto first, ShrinkingRows::Start(optimizer, rules));
      Checkpointer checkpointer(&first.c(), OnRequest(first.cluster->directory() + "/checkpoints"));
      MU_ASSERT_OK_AND_ASSIGN(const Tensor before, first.After(5));
      MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, checkpointer.TakeWhole());
      MU_ASSERT_OK_AND_ASSIGN(const auto restored, ShrinkingRows::Start(optimizer, rules));
      MU_ASSERT_OK(restored.c().Restore(checkpoint));
      MU_ASSERT_OK_AND_ASSIGN(const Tensor expected, restored.After(1));
      EXPECT_NE(expected.flat<float>(), before.flat<float>());
      MU_ASSERT_OK_AND_ASSIGN(const auto warm, ShrinkingRows::Start(optimizer, rules));
      MU_ASSERT_OK_AND_ASSIGN(const pb::TakenValuesProto taken,
                              warm.c().WarmStart(checkpoint, {.slots = true}));
      EXPECT_EQ(taken.steps(), 5u);
      MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, warm.After(1));
      EXPECT_EQ(rows.flat<float>(), expected.flat<float>());
    }
  }
}

// The model has more servers than the other one, hence tables of more partitions by default: both
// tables get those of their source.
TEST(Conformance, OneTableBeginsTwo) {
  const EmbeddingTableSpec users = {.name = "user", .rows = 1000, .dim = 4};
  std::vector<int64_t> ids(1000);
  for (int64_t i = 0; i < 1000; ++i) ids[static_cast<size_t>(i)] = i;
  MU_ASSERT_OK_AND_ASSIGN(auto small, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& first = small->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table, first.CreateEmbeddingTable(users));
  MU_ASSERT_OK_AND_ASSIGN(
      const Function train, first.DefineFunction("train", [&](FunctionBuilder& f) {
        f.Minimize(ReduceSum(Square(
            EmbeddingLookup(table, ConstantTensor(Tensor::Of<int64_t>({3}, {1, 5, 7}))) - 1.0f)));
      }));
  Checkpointer checkpointer(&first, OnRequest(small->directory() + "/checkpoints"));
  first.Schedule(train, {.steps = 3});
  MU_ASSERT_OK_AND_ASSIGN(const std::string checkpoint, checkpointer.TakeWhole());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor trained, first.ReadRows(table, ids));
  ASSERT_NE(trained.flat<float>()[4], 0);

  MU_ASSERT_OK_AND_ASSIGN(auto large, TestCluster::Start({.ps = 5}));
  Coordinator& second = large->coordinator();
  Checkpointer second_checkpointer(&second, OnRequest(large->directory() + "/checkpoints"));
  const WarmStartSpec spec{.map = {{"user", "member"}, {"user", "guest"}}};
  ASSERT_TRUE(second.UsePartitionCountsOf(checkpoint, spec));
  std::vector<EmbeddingTable> begun;
  for (const char* name : {"member", "guest"}) {
    EmbeddingTableSpec renamed = users;
    renamed.name = name;
    MU_ASSERT_OK_AND_ASSIGN(EmbeddingTable created, second.CreateEmbeddingTable(renamed));
    begun.push_back(std::move(created));
  }
  MU_ASSERT_OK_AND_ASSIGN(const pb::TakenValuesProto taken, second.WarmStart(checkpoint, spec));
  EXPECT_EQ(taken.names_size(), 2);
  for (const EmbeddingTable& its : begun) {
    MU_ASSERT_OK_AND_ASSIGN(const Tensor rows, second.ReadRows(its, ids));
    EXPECT_EQ(rows.flat<float>(), trained.flat<float>());
  }
}

// Tables have more partitions by default where there are more servers. Not if the job has a
// checkpoint.
TEST(Conformance, ContinuesWithMoreServersThanTheDefaultIsFor) {
  MU_ASSERT_OK_AND_ASSIGN(auto small, TestCluster::Start({.ps = 1}));
  const std::string directory = small->directory() + "/checkpoints";
  const EmbeddingTableSpec spec = {.name = "rows", .rows = 1000, .dim = 4};
  {
    Checkpointer checkpointer(&small->coordinator(), OnRequest(directory));
    MU_ASSERT_OK(small->coordinator().CreateEmbeddingTable(spec));
    MU_ASSERT_OK(checkpointer.TakeWhole());
  }
  MU_ASSERT_OK_AND_ASSIGN(auto large, TestCluster::Start({.ps = 5}));
  Coordinator& c = large->coordinator();
  Checkpointer checkpointer(&c, OnRequest(directory));
  MU_ASSERT_OK(c.CreateEmbeddingTable(spec));
  MU_EXPECT_OK(c.Restore());
}

// A server is lost when everything has been done: what it takes along runs again, and the last
// checkpoint is taken after that.
TEST(Conformance, PsKilledBeforeTheLastCheckpoint) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  CheckpointerOptions options = OnRequest(cluster->directory() + "/checkpoints");
  // All functions have ended by then: the first checkpoint is taken while they are repeated.
  int begun = 0;
  options.describe = [&](pb::CheckpointProto*) {
    if (++begun > 1) return;
    const pid_t killed = cluster->process("psserver", 1).pid();
    cluster->KillServer(1);
    c.runtime().DaemonDied(killed, "killed");  // as under a supervisor
    MU_ASSERT_OK(cluster->StartServer(1));
  };
  Checkpointer checkpointer(&c, options);
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  job.ScheduleAll(20);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::string last, checkpointer.TakeWhole());
  MU_ASSERT_OK_AND_ASSIGN(const pb::CheckpointProto manifest, ReadManifest(last));
  EXPECT_EQ(manifest.position().functions_size(), 0);
  EXPECT_EQ(manifest.position().steps(), 1000u);
  job.JoinAndCheck();
  // That is what it holds.
  MU_ASSERT_OK(c.Restore(last));
  job.JoinAndCheck();
}

}  // namespace
}  // namespace mu
