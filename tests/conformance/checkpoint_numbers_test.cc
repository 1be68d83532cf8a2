// Numbers of checkpoints that failed, in a whole cluster in memory.
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/conformance/memory_cluster.h"

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
