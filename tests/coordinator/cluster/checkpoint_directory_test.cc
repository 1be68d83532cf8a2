// Numbers of checkpoints.
#include "coordinator/cluster/checkpoint_directory.h"

#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "common/env/file.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { MU_ASSERT_OK(directory_); }
  std::string Parent() const { return directory_->path() + "/checkpoints"; }
  std::string Claim() {
    auto claimed = ClaimCheckpointDirectory(Parent());
    MU_EXPECT_OK(claimed);
    return claimed.ok() ? BaseName(*claimed) : "";
  }
  std::string Path(const std::string& name) const { return JoinPath(Parent(), name); }
  void Complete(const std::string& name) {
    MU_EXPECT_OK(WriteFileAtomic(JoinPath(Path(name), kManifestName), "{}"));
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-checkpoints");
};

TEST_F(CheckpointDirectoryTest, TheNumberOfOneThatFailedIsNotUsedAgain) {
  EXPECT_EQ(Claim(), "ckpt-00000001");
  Complete("ckpt-00000001");
  EXPECT_EQ(Claim(), "ckpt-00000002");
  MU_ASSERT_OK(WriteFileAtomic(Path("ckpt-00000002/ps-0.safetensors"), "half"));
  MU_ASSERT_OK(EmptyCheckpointDirectory(Path("ckpt-00000002")));
  EXPECT_THAT(*ListDirectory(Path("ckpt-00000002")), IsEmpty());
  EXPECT_EQ(Claim(), "ckpt-00000003");
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path("ckpt-00000001")));
  Complete("ckpt-00000003");
  EXPECT_EQ(Claim(), "ckpt-00000004");
  MU_ASSERT_OK_AND_ASSIGN(const auto folders, ListCheckpointFolders(Parent()));
  std::vector<bool> complete;
  for (const ListedCheckpoint& one : folders) complete.push_back(one.complete);
  EXPECT_THAT(complete, ElementsAre(true, false, true, false));
}

// As a network disk that fails for a while.
TEST_F(CheckpointDirectoryTest, OneThatCannotBeLookedAtIsNotTakenForOneThatFailed) {
  Claim();
  const std::string manifest = JoinPath(Path("ckpt-00000001"), kManifestName);
  ASSERT_EQ(::symlink(manifest.c_str(), manifest.c_str()), 0);
  Claim();
  Complete("ckpt-00000002");
  EXPECT_FALSE(ListCheckpointFolders(Parent()).ok());
  EXPECT_FALSE(ListCheckpoints(Parent()).ok());
}

TEST_F(CheckpointDirectoryTest, NobodyIsGivenTheSame) {
  std::vector<std::string> claimed(8);
  std::vector<std::thread> threads;
  for (std::string& name : claimed) threads.emplace_back([&] { name = Claim(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), claimed.size());
}

}  // namespace
}  // namespace mu
