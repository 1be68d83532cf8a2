#include "coordinator/cluster/checkpoint_link.h"

#include <gmock/gmock.h>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::UnorderedElementsAre;

class CheckpointLinkTest : public ::testing::Test {
 protected:
  // A checkpoint's folder whose manifest says `what`.
  void Complete(const std::string& folder, const std::string& what) {
    MU_ASSERT_OK(MakeDirectories(folder));
    MU_ASSERT_OK(WriteFileAtomic(JoinPath(folder, kManifestName), what));
  }
  std::string What() { return ReadFile(JoinPath(best_, kManifestName)).value_or("nothing"); }
  std::vector<std::string> Names() { return *ListDirectory(directory_->path()); }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("checkpoint-link");
  const std::string best_ = JoinPath(directory_->path(), "best");
};

TEST_F(CheckpointLinkTest, EachTakesThePlaceOfTheOneBefore) {
  for (const char* what : {"a", "b", "c"}) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
    Complete(folder, what);
    MU_ASSERT_OK(LinkCheckpoint(best_, folder));
    EXPECT_EQ(What(), what);
    EXPECT_THAT(Names(), UnorderedElementsAre("best", BaseName(folder)));
  }
}

TEST_F(CheckpointLinkTest, AFolderIsReplaced) {
  Complete(best_, "old");
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
  Complete(folder, "new");
  EXPECT_EQ(What(), "old");
  MU_ASSERT_OK(LinkCheckpoint(best_, folder));
  EXPECT_EQ(What(), "new");
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.1"));
}

TEST_F(CheckpointLinkTest, WhatWasBrokenOffIsReplacedToo) {
  MU_ASSERT_OK_AND_ASSIGN(const std::string left, ClaimLinkedCheckpoint(best_));
  MU_ASSERT_OK(WriteFileAtomic(best_ + ".link", ""));
  MU_ASSERT_OK(MakeDirectories(best_ + ".other"));
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
  EXPECT_NE(folder, left);
  Complete(folder, "new");
  MU_ASSERT_OK(LinkCheckpoint(best_, folder));
  EXPECT_EQ(What(), "new");
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.2", "best.other"));
}

}  // namespace
}  // namespace mu
