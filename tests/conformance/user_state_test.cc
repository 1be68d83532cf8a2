// What a program is told after a restart belongs to the position that it continues from.
#include <atomic>
#include <thread>

#include "coordinator/frontend/ops.h"
#include "tests/conformance/memory_cluster.h"

namespace mu {
namespace {

using testing::MemoryCluster;

TEST(UserState, IsOfTheSameMomentAsThePosition) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, MemoryCluster::Start(1, 1, std::make_shared<FaultPlan>(1)));
  Coordinator& c = cluster->coordinator();
  c.EnableRecovery(cluster->directory() + "/checkpoints");
  MU_ASSERT_OK_AND_ASSIGN(const Variable counter,
                          c.CreateVariable({.name = "counter", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function count, c.DefineFunction("count", [&](FunctionBuilder&) {
    AssignAdd(counter, 1);
  }));
  std::atomic<bool> enough{false};
  std::thread program([&] {
    for (int i = 1; !enough; ++i) c.Schedule(count, {.user_state = absl::StrCat(i)});
  });
  for (int i = 0; i < 100; ++i) {
    auto manifest = c.Checkpoint();
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    if (!manifest.ok() || manifest->user_state().empty()) continue;
    // Ids are given from 1 on, one a call.
    EXPECT_EQ(absl::StrCat(manifest->position().next_function() - 1), manifest->user_state());
  }
  enough = true;
  program.join();
  MU_EXPECT_OK(c.Join());
  // What whoever takes it says goes before that.
  pb::CheckpointProto mine;
  mine.set_user_state("mine");
  MU_ASSERT_OK_AND_ASSIGN(const auto taken, c.Checkpoint(mine));
  EXPECT_EQ(taken.user_state(), "mine");
}

}  // namespace
}  // namespace mu
