#include "coordinator/cluster/checkpoint_link.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
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
  // Saves one that servers may go back to.
  std::string Replace(const std::string& what, uint64_t number) {
    const std::string folder = ClaimLinkedCheckpoint(best_).value_or("");
    Complete(folder, what);
    checkpoints_.Add(CheckpointNumber(number), folder);
    checkpoints_.Forget(CheckpointNumber(number - std::min<uint64_t>(number, 1)));
    MU_EXPECT_OK(LinkCheckpoint(best_, folder, &checkpoints_));
    return folder;
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("checkpoint-link");
  const std::string best_ = JoinPath(directory_->path(), "best");
  JobCheckpoints checkpoints_;
};

TEST_F(CheckpointLinkTest, EachTakesThePlaceOfTheOneBefore) {
  for (const char* what : {"a", "b", "c"}) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
    Complete(folder, what);
    MU_ASSERT_OK(LinkCheckpoint(best_, folder, &checkpoints_));
    EXPECT_EQ(What(), what);
    EXPECT_THAT(Names(), UnorderedElementsAre("best", BaseName(folder)));
  }
}

TEST_F(CheckpointLinkTest, AFolderIsReplaced) {
  Complete(best_, "old");
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
  Complete(folder, "new");
  EXPECT_EQ(What(), "old");
  MU_ASSERT_OK(LinkCheckpoint(best_, folder, &checkpoints_));
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
  MU_ASSERT_OK(LinkCheckpoint(best_, folder, &checkpoints_));
  EXPECT_EQ(What(), "new");
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.2", "best.other"));
}

// Recovery may have to go back to the one before the newest.
TEST_F(CheckpointLinkTest, WhatServersMayGoBackToStaysUntilALaterCall) {
  Replace("a", 1);
  Replace("b", 2);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.1", "best.2"));
  Replace("c", 3);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.2", "best.3"));
  EXPECT_EQ(What(), "c");
  // Another process knows nothing of these points, and cleans up.
  checkpoints_.Forget(CheckpointNumber(100));
  Replace("d", 101);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.4"));
}

TEST_F(CheckpointLinkTest, AFolderThatServersMayGoBackToKeepsItsFiles) {
  Complete(best_, "old");
  checkpoints_.Add(CheckpointNumber(1), best_);
  Replace("new", 2);
  EXPECT_EQ(What(), "new");
  MU_ASSERT_OK_AND_ASSIGN(const std::string old, checkpoints_.Find(CheckpointNumber(1)));
  EXPECT_EQ(*ReadFile(JoinPath(old, kManifestName)), "old");
  Replace("newer", 3);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.1", "best.3"));
}

// An evaluation of a checkpoint that was saved without being replaceable, say.
TEST_F(CheckpointLinkTest, AFolderThatIsReadKeepsItsFiles) {
  Complete(best_, "old");
  auto held = checkpoints_.Hold(best_);
  Replace("new", 1);
  EXPECT_EQ(*ReadFile(JoinPath(held->folder(), kManifestName)), "old");
  Replace("newer", 2);
  EXPECT_EQ(*ReadFile(JoinPath(held->folder(), kManifestName)), "old");
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.1", "best.2", "best.3"));
  held.reset();
  Replace("newest", 3);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.3", "best.4"));
}

TEST_F(CheckpointLinkTest, TheManifestIsThatOfTheFolderThatIsHeld) {
  const auto write = [](const std::string& folder, uint64_t number) {
    pb::CheckpointProto manifest;
    manifest.set_format_version(kCheckpointFormat);
    manifest.set_number(number);
    MU_EXPECT_OK(MakeDirectories(folder));
    MU_EXPECT_OK(WriteManifest(folder, manifest));
  };
  std::shared_ptr<const JobCheckpoints::Held> held;
  EXPECT_THAT(ReadLinkedManifest(best_, &checkpoints_, &held),
              testing::HasCode(absl::StatusCode::kNotFound));
  write(best_, 1);
  MU_ASSERT_OK_AND_ASSIGN(const auto first, ReadLinkedManifest(best_, &checkpoints_, &held));
  EXPECT_EQ(first.number(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, ClaimLinkedCheckpoint(best_));
  write(folder, 2);
  MU_ASSERT_OK(LinkCheckpoint(best_, folder, &checkpoints_));
  MU_ASSERT_OK_AND_ASSIGN(const auto still, ReadManifest(held->folder()));
  EXPECT_EQ(still.number(), 1u);
  MU_ASSERT_OK_AND_ASSIGN(const auto second, ReadLinkedManifest(best_, &checkpoints_, &held));
  EXPECT_EQ(second.number(), 2u);
  EXPECT_EQ(held->folder(), folder) << "not the link, which will name another";
}

TEST_F(CheckpointLinkTest, FoldersOfTheUserStay) {
  Complete(best_ + ".1", "the user's");
  const std::string ours = Replace("a", 1);
  std::filesystem::copy(ours, best_ + ".7", std::filesystem::copy_options::recursive);
  Replace("b", 2);
  Replace("c", 3);
  Replace("d", 4);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.1", "best.7", "best.9", "best.10"));
  EXPECT_EQ(*ReadFile(JoinPath(best_ + ".1", kManifestName)), "the user's");
  EXPECT_EQ(*ReadFile(JoinPath(best_ + ".7", kManifestName)), "a");
}

// As programs wrote it that did not mark folders.
TEST_F(CheckpointLinkTest, WhatTheLinkNamedGoes) {
  Complete(best_ + ".4", "earlier");
  std::filesystem::create_symlink("best.4", best_);
  EXPECT_EQ(LinkedFolder(best_), best_ + ".4");
  EXPECT_EQ(LinkedFolder(best_ + ".4"), best_ + ".4") << "no link";
  Replace("a", 1);
  EXPECT_THAT(Names(), UnorderedElementsAre("best", "best.5"));
  std::filesystem::create_symlink("/somewhere/else", best_ + ".other");
  EXPECT_EQ(LinkedFolder(best_ + ".other"), best_ + ".other") << "a link of the user";
}

}  // namespace
}  // namespace mu
