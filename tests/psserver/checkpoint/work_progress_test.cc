// What a server's heartbeats say of its work: it is busy while a save, a restore or Configure is
// executing, however that ends, and each piece of it counts.
#include "common/env/work_progress.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "tests/psserver/cluster.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::PsCluster;

TEST(WorkProgress, CountsWhatTheThreadsOfItsScopesMove) {
  WorkProgress one, other;
  WorkProgress::Moved(5);
  {
    const WorkProgress::Scope outer(&one);
    const uint64_t begun = one.moved();
    EXPECT_GT(begun, 0u) << "a call is not taken for the one before it";
    WorkProgress::Moved(5);
    std::thread([] { WorkProgress::Moved(100); }).join();
    {
      const WorkProgress::Scope inner(&other);
      WorkProgress::Moved(7);
    }
    EXPECT_FALSE(other.busy());
    WorkProgress::Moved(5);
    EXPECT_EQ(one.moved(), begun + 10);
    EXPECT_EQ(other.moved(), begun + 7);
    EXPECT_TRUE(one.busy());
    std::thread([&] { const WorkProgress::Scope second(&one); }).join();
    EXPECT_TRUE(one.busy()) << "the first call";
  }
  EXPECT_FALSE(one.busy());
}

TEST(WorkProgress, EachCallOfAServerCountsAndEnds) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-progress"));
  PsCluster cluster(1);
  const WorkProgress& progress = cluster.server(0).progress();
  uint64_t before = 0;
  const auto moved = [&] {
    EXPECT_FALSE(progress.busy());
    return progress.moved() - std::exchange(before, progress.moved());
  };
  MU_ASSERT_OK(cluster.Configure());
  EXPECT_GT(moved(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<pb::CheckpointFileProto> files,
                          cluster.admin().Save(cluster.context(), directory.path()));
  EXPECT_GT(moved(), 2 * files[0].bytes()) << "written and synced";
  cluster.context().set_generation(1);
  MU_ASSERT_OK(cluster.admin().Restore(cluster.context(), directory.path(), files));
  EXPECT_GT(moved(), files[0].bytes()) << "loaded";
  MU_ASSERT_OK(cluster.admin().LoadView(cluster.context(), 1, directory.path(), files));
  EXPECT_GT(moved(), files[0].bytes()) << "loaded";
  MU_ASSERT_OK(cluster.admin().DropView(cluster.context(), 1));
  EXPECT_GT(moved(), 0u);
  const std::string file = directory.path() + "/a_file";
  std::ofstream(file) << "no folder";
  EXPECT_FALSE(cluster.admin().Save(cluster.context(), file).ok());
  EXPECT_GT(moved(), 0u);
  cluster.context().set_generation(2);
  EXPECT_FALSE(cluster.admin().Restore(cluster.context(), "/nowhere", files).ok());
  EXPECT_GT(moved(), 0u);
}

// However much the system would keep in its cache: a disk that is slow shows that it writes.
TEST(WorkProgress, AWriterLeavesLittleToItsLastSync) {
  constexpr size_t kMegabyte = 1 << 20, kMegabytes = 150;
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-progress"));
  MU_ASSERT_OK_AND_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::Create(directory.path() + "/file",
                                {{"x", kUInt8, {int64_t{kMegabyte * kMegabytes}}}}, {}));
  const std::vector<char> data(kMegabyte, 'x');
  WorkProgress progress;
  {
    const WorkProgress::Scope executing(&progress);
    for (size_t i = 0; i < kMegabytes; ++i) MU_ASSERT_OK(writer.Append(data.data(), data.size()));
  }
  EXPECT_GT(progress.moved(), (kMegabytes - 2 + 80) * kMegabyte);
}

}  // namespace
}  // namespace mu
