// What a checkpointer does around each checkpoint, on a whole cluster in memory.
#include "coordinator/training/checkpointer.h"

#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::MemoryCluster;

// It may name older ones that have to stay: whoever marks them does so before they are deleted.
TEST(CheckpointerTest, OlderOnesAreThereUntilItIsKnownWhatTheNewestNames) {
  MU_ASSERT_OK_AND_ASSIGN(const auto cluster,
                          MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.CreateVariable({.name = "values", .shape = Shape({8})}).status());
  const std::string parent = cluster->directory() + "/checkpoints";
  std::vector<std::string> taken;
  CheckpointerOptions options = {.directory = parent, .every = absl::InfiniteDuration(), .keep = 1};
  options.before_pruning = [&](const pb::CheckpointProto&) {
    if (taken.empty()) return;
    EXPECT_TRUE(FileExists(JoinPath(taken.back(), kManifestName))) << taken.back();
  };
  Checkpointer checkpointer(&c, options);
  c.StartFresh();
  for (int i = 0; i < 3; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string newest, checkpointer.TakeNow());
    EXPECT_THAT(*ListCheckpoints(parent), ElementsAre(newest)) << "the others are deleted then";
    taken.push_back(newest);
  }
}

}  // namespace
}  // namespace mu
