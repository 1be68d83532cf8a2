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
