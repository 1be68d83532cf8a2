// Numbers of checkpoints that failed, in a whole cluster in memory.
#include <atomic>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/memory_cluster.h"
#include "tests/testing/wait.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::IsEmpty;
using testing::MemoryCluster;

TEST(CheckpointNumbers, OneThatFailedKeepsItsNumber) {
  const auto faults = std::make_shared<FaultPlan>(1);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, faults));
  Coordinator& c = cluster->coordinator();
  const std::string parent = cluster->directory() + "/checkpoints";
  c.EnableRecovery(parent);
  MU_ASSERT_OK(c.CreateVariable({.name = "values", .shape = Shape({8})}).status());
  const auto path = [&](const char* number) { return parent + "/ckpt-0000000" + number; };
  std::string used;
  MU_ASSERT_OK(c.Checkpoint({}, &used));
  EXPECT_EQ(used, path("1"));
  // The server writes its file, but what is heard of it is an error.
  faults->Add({.method = "/muster.PsServer/Save",
               .fault = Fault::kLoseReply,
               .times = 1,
               .error = absl::StatusCode::kResourceExhausted});
  EXPECT_THAT(c.Checkpoint({}, &used), HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(used, path("2"));
  EXPECT_THAT(*ListDirectory(path("2")), IsEmpty());
  MU_ASSERT_OK(c.PruneCheckpoints(5));
  EXPECT_TRUE(DirectoryExists(path("2"))) << "nothing newer says that this number is used";
  MU_ASSERT_OK(c.Checkpoint({}, &used));
  EXPECT_EQ(used, path("3"));
  EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(path("1"), path("3")));
  MU_ASSERT_OK(c.PruneCheckpoints(5));
  EXPECT_FALSE(DirectoryExists(path("2")));
  EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(path("1"), path("3")));
}

// A job that was continued from it would lack the data of what was cancelled.
TEST(CheckpointNumbers, NoneIsTakenBesideAProgramWhoseTrainingWasCancelled) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Variable sum, c.CreateVariable({.name = "sum", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function add,
                          c.DefineFunction("add", [&](FunctionBuilder&) { AssignAdd(sum, 1); }));
  std::atomic<uint64_t> requests{0};
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .requests = &requests});
  c.Schedule(add);
  MU_ASSERT_OK(c.Join());
  c.Cancel();
  ++requests;
  EXPECT_TRUE(testing::Eventually([&] { return checkpointer.failed() > 0; }));
  EXPECT_EQ(checkpointer.taken(), 0u);
  EXPECT_THAT(c.CheckpointBeside(), HasCode(absl::StatusCode::kCancelled));
  MU_ASSERT_OK(checkpointer.TakeNow().status()) << "the program itself knows what it saves";
  c.Schedule(add);
  MU_ASSERT_OK(c.Join());
  ++requests;
  EXPECT_TRUE(testing::Eventually([&] { return checkpointer.taken() == 2; }));
}

// A request that comes while one is taken is answered by it, and by no other after it: a program
// that takes its last one would have it pruned, or see the next.
TEST(CheckpointNumbers, ARequestDuringOneTakesNoOther) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  MU_ASSERT_OK(
      cluster->coordinator().CreateVariable({.name = "values", .shape = Shape({8})}).status());
  std::atomic<uint64_t> requests{0};
  std::atomic<int> begun{0};
  CheckpointerOptions options = {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .requests = &requests};
  options.describe = [&](pb::CheckpointProto*) {
    ++begun;
    ++requests;
    Notification never;
    never.WaitFor(absl::Milliseconds(300));  // the other thread looks every 100 ms
  };
  {
    Checkpointer checkpointer(&cluster->coordinator(), options);
    MU_ASSERT_OK(checkpointer.TakeNow().status());
    EXPECT_EQ(checkpointer.taken(), 1u);
  }
  EXPECT_EQ(begun, 1);
}

// One that comes while the servers write may be about what they do not write.
TEST(CheckpointNumbers, ARequestWhileOneIsWrittenTakesAnother) {
  const auto faults = std::make_shared<FaultPlan>(1);
  faults->Add(
      {.method = "Save", .fault = Fault::kDelay, .times = 1, .delay = absl::Milliseconds(300)});
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, faults));
  MU_ASSERT_OK(
      cluster->coordinator().CreateVariable({.name = "values", .shape = Shape({8})}).status());
  std::atomic<uint64_t> requests{0};
  Checkpointer checkpointer(&cluster->coordinator(),
                            {.directory = cluster->directory() + "/checkpoints",
                             .every = absl::InfiniteDuration(),
                             .requests = &requests});
  std::thread asking([&] {
    testing::WaitWhile([&] { return faults->hits() == 0; });
    ++requests;
  });
  MU_EXPECT_OK(checkpointer.TakeNow().status());
  asking.join();
  testing::WaitWhile([&] { return checkpointer.taken() < 2; });
}

// Without any time or number of steps: what recovery would have to repeat is bounded all the same.
TEST(CheckpointNumbers, OneIsDueWhenManyFunctionsAreRemembered) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const Variable values,
                          c.CreateVariable({.name = "values", .shape = Shape({8})}));
  const Tensor ones = Tensor::Of<float>(Shape({8}), std::vector<float>(8, 1));
  MU_ASSERT_OK_AND_ASSIGN(const Function add, c.DefineFunction("add", [&](FunctionBuilder&) {
    AssignAdd(values, ConstantTensor(ones));
  }));
  Checkpointer checkpointer(&c, {.directory = cluster->directory() + "/checkpoints",
                                 .every = absl::InfiniteDuration(),
                                 .most_uncovered = 10});
  for (int i = 0; i < 11; ++i) c.Schedule(add);
  MU_ASSERT_OK(c.Join());
  EXPECT_EQ(c.runtime().uncovered_functions(), 11u);
  testing::WaitWhile([&] { return checkpointer.taken() == 0; });
  EXPECT_EQ(checkpointer.taken(), 1u);
  EXPECT_EQ(c.runtime().uncovered_functions(), 0u);
}

TEST(CheckpointNumbers, ADamagedOneDoesNotCountAmongThoseKept) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  const std::string parent = cluster->directory() + "/checkpoints";
  c.EnableRecovery(parent);
  MU_ASSERT_OK_AND_ASSIGN(const Variable values,
                          c.CreateVariable({.name = "values", .shape = Shape({8})}));
  const auto path = [&](const char* number) { return parent + "/ckpt-0000000" + number; };
  for (int i = 0; i < 2; ++i) MU_ASSERT_OK(c.Checkpoint());
  MU_ASSERT_OK(WriteFileAtomic(path("2") + "/ps-0.safetensors", "damaged"));
  MU_ASSERT_OK(cluster->StartServer(0));  // the place is taken: back to a checkpoint
  MU_ASSERT_OK(c.Read(values));
  ASSERT_EQ(c.Stats().failures.size(), 1u);
  EXPECT_THAT(c.Stats().failures[0].message, ::testing::HasSubstr(path("1")));
  MU_ASSERT_OK(c.Checkpoint());
  MU_ASSERT_OK(c.PruneCheckpoints(2));
  EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(path("1"), path("2"), path("3")));
  MU_ASSERT_OK(c.Checkpoint());
  MU_ASSERT_OK(c.PruneCheckpoints(2));
  EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(path("3"), path("4")));
}

}  // namespace
}  // namespace mu
