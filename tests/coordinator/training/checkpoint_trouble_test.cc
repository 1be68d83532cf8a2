#include "coordinator/training/checkpoint_trouble.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mu {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const absl::Time kBegin = absl::UnixEpoch();
const absl::Status kServerLost = absl::UnavailableError("server 1 was lost meanwhile");

absl::Time At(double seconds) { return kBegin + absl::Seconds(seconds); }
// A full disk names another folder each time.
absl::Status DiskFull(int folder) {
  return absl::ResourceExhaustedError(absl::StrCat("no space for ckpt-", folder));
}

TEST(CheckpointTrouble, EachCauseOnceAndSinceWhenNothingIsSaved) {
  CheckpointTrouble trouble(kBegin);
  EXPECT_EQ(trouble.Failed(At(11.5), DiskFull(1)),
            "a checkpoint failed, training goes on: no space for ckpt-1; what was trained in the "
            "last 12s is not saved: none was taken since the coordinator started");
  for (int i = 2; i < 30; ++i) EXPECT_THAT(trouble.Failed(At(12 + i), DiskFull(i)), IsEmpty());
  EXPECT_THAT(trouble.Failed(At(50), absl::PermissionDeniedError("read only")),
              HasSubstr("read only; what was trained in the last 50s"))
      << "another cause";
}

TEST(CheckpointTrouble, ThatTheySucceedAgainIsToldAndWhatFailsThen) {
  CheckpointTrouble trouble(kBegin);
  EXPECT_THAT(trouble.Succeeded(At(5), "a"), IsEmpty()) << "it is no news";
  EXPECT_THAT(trouble.Failed(At(10), DiskFull(1)),
              HasSubstr("the last 5s is not saved: the newest checkpoint is a"));
  EXPECT_EQ(trouble.Succeeded(At(69), "b"),
            "a checkpoint has succeeded again, the first in 1m4s: b");
  EXPECT_THAT(trouble.Succeeded(At(70), "c"), IsEmpty());
  EXPECT_THAT(trouble.Failed(At(71), DiskFull(2)), EndsWith("the newest checkpoint is c"));
}

TEST(CheckpointTrouble, WhatPassesIsToldWhenItGoesOn) {
  CheckpointTrouble trouble(kBegin);
  for (int i = 1; i < CheckpointTrouble::kPassing; ++i)
    EXPECT_THAT(trouble.Failed(At(i), kServerLost), IsEmpty());
  EXPECT_THAT(trouble.Failed(At(9), kServerLost), HasSubstr("server 1 was lost meanwhile"));
  EXPECT_THAT(trouble.Failed(At(10), kServerLost), IsEmpty());
  EXPECT_THAT(trouble.Succeeded(At(11), "a"), Not(IsEmpty()));
  EXPECT_THAT(trouble.Failed(At(12), kServerLost), IsEmpty()) << "it is counted anew";
}

// As a server's own: its disk hangs, or it has no memory for copies.
TEST(CheckpointTrouble, ASaveThatAServerGivesUpIsOne) {
  CheckpointTrouble trouble(kBegin);
  EXPECT_THAT(trouble.Failed(At(1), absl::AbortedError("the save was ended: nothing was written")),
              ::testing::HasSubstr("nothing was written"));
}

TEST(CheckpointTrouble, WhatWasStoppedIsNone) {
  CheckpointTrouble trouble(kBegin);
  EXPECT_THAT(trouble.Failed(At(1), absl::OkStatus()), IsEmpty());
  EXPECT_THAT(trouble.Failed(At(1), absl::CancelledError("stopped")), IsEmpty());
  EXPECT_THAT(trouble.Succeeded(At(2), "a"), IsEmpty());
}

// A disk that is full now and then for months.
TEST(CheckpointTrouble, NotForEver) {
  CheckpointTrouble trouble(kBegin);
  for (int i = 1; i <= CheckpointTrouble::kMostTimes; ++i) {
    const std::string warning = trouble.Failed(At(i), DiskFull(i));
    EXPECT_THAT(warning, HasSubstr("no space"));
    EXPECT_EQ(absl::StrContains(warning, "only the log"), i == CheckpointTrouble::kMostTimes);
    EXPECT_THAT(trouble.Succeeded(At(i), "a"), Not(IsEmpty()));
  }
  EXPECT_THAT(trouble.Failed(At(100), DiskFull(100)), IsEmpty());
  EXPECT_THAT(trouble.Succeeded(At(101), "a"), IsEmpty());
}

}  // namespace
}  // namespace mu
