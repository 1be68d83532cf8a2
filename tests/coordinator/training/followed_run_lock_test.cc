// Two processes that follow one run. A lock is an open file's, so two FollowedRuns are two
// processes.
#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/env/host_name.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/followed_checkpoints.h"
#include "coordinator/training/followed_run.h"
#include "coordinator/training/run_status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::StatusIs;

class FollowedRunLockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK(directory_.status());
    run_ = directory_->path();
  }
  void Complete(const std::string& name) {
    const std::string folder = absl::StrCat(run_, "/checkpoints/", name);
    MU_ASSERT_OK(MakeDirectories(folder));
    MU_ASSERT_OK(WriteManifest(folder, {}));
  }
  std::string Lock() const { return JoinPath(FollowedFolder(run_), kFollowerLock); }
  // By this process.
  auto IsRefused() const {
    return StatusIs(
        absl::StatusCode::kFailedPrecondition,
        AllOf(HasSubstr(absl::StrCat("a coordinator (process ", ::getpid(), " on ", HostName(),
                                     ") follows the run in ", run_, " since 2")),
              HasSubstr("only one process may follow a run")));
  }

  absl::StatusOr<TempDirectory> directory_ = TempDirectory::Create("followed-run-lock");
  std::string run_;
};

TEST_F(FollowedRunLockTest, ASecondOneIsRefusedWhileTheFirstLives) {
  FollowedRun second(run_ + "/checkpoints");
  {
    FollowedRun first(run_);
    MU_ASSERT_OK(first.Open());
    EXPECT_THAT(second.Open(), IsRefused());
    EXPECT_THAT(second.Next(nullptr), IsRefused());
    Complete("ckpt-00000001");
    MU_ASSERT_OK_AND_ASSIGN(const std::string folder, first.Next(nullptr));
    EXPECT_EQ(BaseName(folder), "ckpt-00000001");
    EXPECT_THAT(second.Next(nullptr), IsRefused());
    MU_ASSERT_OK(first.Add(folder, Evaluation()));
  }
  EXPECT_TRUE(FileExists(Lock())) << "a process that is killed leaves it, too";
  MU_ASSERT_OK(second.Open());
  EXPECT_THAT(second.evaluations(), SizeIs(1)) << "what the first one has written down meanwhile";
}

TEST_F(FollowedRunLockTest, TheEndOfTheRunRemovesIt) {
  FollowedRun first(run_), second(run_);
  MU_ASSERT_OK(first.Open());
  MU_ASSERT_OK(MarkRun(run_, RunStatus::kDone));
  EXPECT_THAT(second.Next(nullptr), IsRefused());
  MU_ASSERT_OK_AND_ASSIGN(const std::string end, first.Next(nullptr));
  EXPECT_THAT(end, IsEmpty()) << "a lock is no checkpoint";
  EXPECT_FALSE(FileExists(FollowedFolder(run_)));
  MU_ASSERT_OK_AND_ASSIGN(const std::string same, second.Next(nullptr));
  EXPECT_THAT(same, IsEmpty());
  EXPECT_FALSE(FileExists(FollowedFolder(run_)));
}

// As a network file system calls a lock that was removed while somebody has it open.
TEST_F(FollowedRunLockTest, WhatAFileSystemKeepsIsNoCheckpoint) {
  MU_ASSERT_OK(MakeDirectories(FollowedFolder(run_)));
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(FollowedFolder(run_), ".nfs000000000000a1b2"), ""));
  MU_ASSERT_OK(MarkRun(run_, RunStatus::kDone));
  FollowedRun run(run_);
  MU_ASSERT_OK_AND_ASSIGN(const std::string end, run.Next(nullptr));
  EXPECT_THAT(end, IsEmpty());
}

// Somebody removes the folder, by hand, while the run is followed.
TEST_F(FollowedRunLockTest, WhoeverLosesItTakesItAgain) {
  FollowedRun first(run_), second(run_);
  MU_ASSERT_OK(first.Open());
  MU_ASSERT_OK(RemoveTree(FollowedFolder(run_)));
  Complete("ckpt-00000001");
  MU_ASSERT_OK(first.Next(nullptr));
  EXPECT_THAT(second.Open(), IsRefused());
}

TEST_F(FollowedRunLockTest, WhoeverLosesItToAnotherOneGivesWay) {
  FollowedRun first(run_), second(run_);
  Complete("ckpt-00000001");
  MU_ASSERT_OK_AND_ASSIGN(const std::string folder, first.Next(nullptr));
  MU_ASSERT_OK(RemoveTree(FollowedFolder(run_)));
  MU_ASSERT_OK(second.Open());
  EXPECT_THAT(first.Add(folder, Evaluation()), IsRefused());
  EXPECT_THAT(first.Next(nullptr), IsRefused());
  EXPECT_FALSE(FileExists(JoinPath(run_, "evaluations.json")));
  MU_ASSERT_OK_AND_ASSIGN(const std::string again, second.Next(nullptr));
  MU_ASSERT_OK(second.Add(again, Evaluation()));
  EXPECT_THAT(second.evaluations(), SizeIs(1));
}

// It must not count as one that follows: what is written down there would be evaluated again.
TEST_F(FollowedRunLockTest, WhoeverCannotReadTheRecordHoldsNothing) {
  Complete("ckpt-00000001");
  MU_ASSERT_OK(WriteFileAtomic(JoinPath(run_, "evaluations.json"), "[{"));
  FollowedRun first(run_), second(run_);
  for (FollowedRun* const run : {&first, &second}) {
    EXPECT_THAT(run->Open(), testing::HasCode(absl::StatusCode::kDataLoss));
    EXPECT_THAT(run->Next(nullptr), testing::HasCode(absl::StatusCode::kDataLoss));
  }
}

}  // namespace
}  // namespace mu
