// Which checkpoints of a job's directory are removed.
#include "coordinator/cluster/job_checkpoints.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/cluster/kept_checkpoint.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using testing::HasCode;
using ::testing::SizeIs;

bool NobodyElse() { return false; }

class JobCheckpointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_);
    checkpoints_.Enable(Parent());
  }
  std::string Parent() const { return directory_->path() + "/checkpoints"; }
  std::string Followed() const { return FollowedFolder(directory_->path()); }
  std::string Path(int number) const { return absl::StrCat(Parent(), "/ckpt-0000000", number); }
  void Complete(int first, int last) {
    for (int number = first; number <= last; ++number) {
      MU_ASSERT_OK_AND_ASSIGN(const std::string folder, checkpoints_.Claim(/*begun=*/true));
      ASSERT_EQ(folder, Path(number));
      MU_ASSERT_OK(WriteManifest(folder, {}));
    }
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("muster-job-checkpoints");
  JobCheckpoints checkpoints_;
};

TEST_F(JobCheckpointsTest, TheNewestAreKept) {
  Complete(1, 4);
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3), Path(4)));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse)) << "there is nothing to do";
  MU_EXPECT_OK(checkpoints_.Prune(0, NobodyElse)) << "0 keeps all";
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3), Path(4)));
}

TEST_F(JobCheckpointsTest, ThoseThatAreMarkedStayBesideTheNewest) {
  Complete(1, 5);
  for (const int number : {2, 3, 5}) MU_ASSERT_OK(MarkKept(Path(number), true));
  MU_ASSERT_OK(MarkKept(Path(3), false));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(2), Path(4), Path(5)));
  MU_ASSERT_OK(MarkKept(Path(2), false));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(4), Path(5)));
  EXPECT_THAT(MarkKept(Path(2), true), HasCode(absl::StatusCode::kNotFound));
}

TEST_F(JobCheckpointsTest, WhatSomebodyReadsStays) {
  Complete(1, 4);
  auto first = checkpoints_.Hold(Path(1));
  auto second = checkpoints_.Hold(Parent() + "/../checkpoints/ckpt-00000001");
  EXPECT_TRUE(checkpoints_.IsWanted(Path(1)));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(1), Path(3), Path(4)));
  first.reset();
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse)) << "it was held twice";
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(1), Path(3), Path(4)));
  second.reset();
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3), Path(4)));
}

// By whatever path they know it.
TEST_F(JobCheckpointsTest, WhoReadsOneOrMayGoBackToItKnowsItsNewName) {
  Complete(1, 2);
  const auto held = checkpoints_.Hold(Path(1));
  const auto other = checkpoints_.Hold(Parent() + "/../checkpoints/ckpt-00000001");
  const auto stays = checkpoints_.Hold(Path(2));
  checkpoints_.Add(CheckpointNumber(1), Path(1));
  const std::string renamed = Parent() + "/renamed";
  MU_EXPECT_OK(checkpoints_.Rename(Path(1), [&]() -> absl::StatusOr<std::string> {
    MU_RETURN_IF_ERROR(RenameFile(Path(1), renamed));
    return renamed;
  }));
  EXPECT_EQ(held->folder(), renamed);
  EXPECT_TRUE(held->IsNotCalled(Path(1)));
  EXPECT_FALSE(held->IsNotCalled(renamed));
  EXPECT_EQ(other->folder(), renamed);
  EXPECT_EQ(stays->folder(), Path(2));
  EXPECT_EQ(*checkpoints_.Find(CheckpointNumber(1)), renamed);
  EXPECT_THAT(checkpoints_.Rename(
                  Path(2), [] { return absl::StatusOr<std::string>(absl::NotFoundError("")); }),
              HasCode(absl::StatusCode::kNotFound));
  EXPECT_EQ(stays->folder(), Path(2));
}

TEST_F(JobCheckpointsTest, OneThatServersGoBackToIsHeldByItsNumber) {
  Complete(1, 4);
  checkpoints_.Add(CheckpointNumber(1), Path(1));
  MU_ASSERT_OK_AND_ASSIGN(auto held, checkpoints_.Hold(CheckpointNumber(1)));
  EXPECT_EQ(held->folder(), Path(1));
  checkpoints_.Forget(CheckpointNumber(2));
  EXPECT_THAT(checkpoints_.Hold(CheckpointNumber(1)), HasCode(absl::StatusCode::kNotFound));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(1), Path(3), Path(4)));
  const std::string renamed = Parent() + "/renamed";
  MU_EXPECT_OK(checkpoints_.Rename(Path(1), [&] { return absl::StatusOr<std::string>(renamed); }));
  EXPECT_EQ(held->folder(), renamed);
  EXPECT_TRUE(held->IsNotCalled(Path(1)));
  held.reset();
  EXPECT_FALSE(checkpoints_.IsWanted(renamed));
}

TEST_F(JobCheckpointsTest, ADamagedOneDoesNotStandForAGoodOne) {
  Complete(1, 4);
  checkpoints_.NoteBad(Path(4));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(2), Path(3), Path(4)));
}

// A program restores an old one by itself: that is all its servers can go back to.
TEST_F(JobCheckpointsTest, OneThatServersMayGoBackToStays) {
  Complete(1, 5);
  checkpoints_.Add(CheckpointNumber(1), Parent() + "/../checkpoints/ckpt-00000002");
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(2), Path(4), Path(5)));
  checkpoints_.Add(CheckpointNumber(2), Path(5));
  checkpoints_.Forget(CheckpointNumber(2));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(4), Path(5)));
}

TEST_F(JobCheckpointsTest, ASecondChoiceOfServersGoesAsTheOthersDo) {
  Complete(1, 3);
  checkpoints_.Add(CheckpointNumber(1), Path(2));
  checkpoints_.Add(CheckpointNumber(2), Path(3));
  EXPECT_TRUE(checkpoints_.IsWanted(Path(2)));
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3)));
}

TEST_F(JobCheckpointsTest, ASecondChoiceStaysIfTheFirstIsDamaged) {
  Complete(1, 3);
  checkpoints_.Add(CheckpointNumber(1), Path(1));
  checkpoints_.Add(CheckpointNumber(2), Path(2));
  checkpoints_.NoteBad(Path(2));
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(1), Path(3)));
}

TEST_F(JobCheckpointsTest, WhatAFailedOneLeftGoesWithTheOldOnes) {
  Complete(1, 1);
  MU_ASSERT_OK_AND_ASSIGN(const std::string failed, checkpoints_.Claim(/*begun=*/true));
  Complete(3, 3);
  MU_EXPECT_OK(checkpoints_.Prune(5, NobodyElse));
  EXPECT_FALSE(FileExists(failed));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(1), Path(3)));
}

TEST_F(JobCheckpointsTest, SomebodyElsesFileStaysAndHoldsUpNothing) {
  Complete(1, 1);
  MU_ASSERT_OK(WriteFileAtomic(Path(2), "notes"));
  Complete(3, 3);
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3)));
  EXPECT_TRUE(FileExists(Path(2)));
}

TEST_F(JobCheckpointsTest, ThoseThatSomebodyFollowsAreMoved) {
  Complete(1, 1);
  MU_ASSERT_OK_AND_ASSIGN(const std::string failed, checkpoints_.Claim(/*begun=*/true));
  Complete(3, 6);
  MU_ASSERT_OK(MakeDirectories(JoinPath(Followed(), BaseName(Path(4)))));  // is held already
  MU_ASSERT_OK(WriteManifest(JoinPath(Followed(), BaseName(Path(4))), {}));
  MU_EXPECT_OK(checkpoints_.Prune(2, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(5), Path(6)));
  EXPECT_FALSE(FileExists(failed));
  EXPECT_FALSE(FileExists(Path(4)));
  EXPECT_THAT(*ListDirectory(Followed()),
              ElementsAre("ckpt-00000001", "ckpt-00000003", "ckpt-00000004"));
  EXPECT_THAT(*ListCheckpoints(Followed()), SizeIs(3)) << "they are complete";
}

TEST_F(JobCheckpointsTest, ThoseThatNobodyFollowsAreDeleted) {
  Complete(1, 3);
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_FALSE(FileExists(Followed()));
  // In its place is something else: nothing can be moved there, and the disk is not to fill up.
  MU_ASSERT_OK(WriteFileAtomic(Followed(), ""));
  Complete(4, 4);
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(4)));
}

// It would take a program's folder for that of a follower.
TEST_F(JobCheckpointsTest, AFolderOfAnotherNameIsNoRuns) {
  MU_ASSERT_OK(MakeDirectories(Followed()));
  const std::string own = directory_->path() + "/own";
  checkpoints_.Enable(own);
  for (int i = 0; i < 2; ++i) {
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder, checkpoints_.Claim(/*begun=*/true));
    MU_ASSERT_OK(WriteManifest(folder, {}));
  }
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(own), SizeIs(1));
  EXPECT_THAT(*ListDirectory(Followed()), SizeIs(0));
}

TEST_F(JobCheckpointsTest, AFollowerThatIsGoneDoesNotFillTheDisk) {
  for (size_t i = 1; i < kMostFollowed; ++i)
    MU_ASSERT_OK(MakeDirectories(absl::StrCat(Followed(), "/earlier-", i)));
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(Followed(), kFollowerLock), ""));  // no checkpoint
  Complete(1, 4);
  MU_EXPECT_OK(checkpoints_.Prune(1, NobodyElse));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(4)));
  EXPECT_THAT(*ListCheckpoints(Followed()), ElementsAre(Followed() + "/ckpt-00000001"));
  EXPECT_THAT(*ListDirectory(Followed()), SizeIs(kMostFollowed + 1));
}

// The newer coordinator may be restoring from one of them.
TEST_F(JobCheckpointsTest, ACoordinatorThatIsSupersededRemovesNothingMore) {
  Complete(1, 4);
  EXPECT_THAT(checkpoints_.Prune(1, [] { return true; }), HasCode(absl::StatusCode::kAborted));
  EXPECT_THAT(*ListCheckpoints(Parent()), SizeIs(4));
  int asked = 0;
  EXPECT_THAT(checkpoints_.Prune(1, [&] { return ++asked > 2; }),
              HasCode(absl::StatusCode::kAborted));
  EXPECT_THAT(*ListCheckpoints(Parent()), ElementsAre(Path(3), Path(4)));
}

TEST(CheckpointFolders, ThoseThatFailPushOutNoGoodOne) {
  JobCheckpoints checkpoints;
  checkpoints.Add(CheckpointNumber(1), "good");
  checkpoints.Forget(CheckpointNumber(1));
  for (uint64_t number = 2; number < 100; ++number) {
    checkpoints.Add(CheckpointNumber(number), "failed");
    EXPECT_EQ(*checkpoints.Find(CheckpointNumber(number)), "failed") << "it may just be committed";
    checkpoints.Remove(CheckpointNumber(number));
  }
  EXPECT_EQ(*checkpoints.Find(CheckpointNumber(1)), "good");
  EXPECT_THAT(checkpoints.Find(CheckpointNumber(2)), HasCode(absl::StatusCode::kNotFound));
}

TEST(CheckpointFolders, ThoseThatAreStillWantedAreKnown) {
  JobCheckpoints checkpoints;
  for (uint64_t number = 1; number <= 9; ++number) {
    checkpoints.Add(CheckpointNumber(number), absl::StrCat(number));
    MU_EXPECT_OK(checkpoints.Find(CheckpointNumber(1))) << "before the commit";
  }
  checkpoints.Forget(CheckpointNumber(8));
  EXPECT_THAT(checkpoints.Find(CheckpointNumber(7)), HasCode(absl::StatusCode::kNotFound));
  EXPECT_EQ(*checkpoints.Find(CheckpointNumber(8)), "8");
  EXPECT_EQ(*checkpoints.Find(CheckpointNumber(9)), "9");
}

}  // namespace
}  // namespace mu
