#include "coordinator/training/checkpoint_retry.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

const absl::Time kStart = absl::UnixEpoch();
const absl::Status kDiskFull = absl::ResourceExhaustedError("the disk is full");
const absl::Status kServerLost = absl::UnavailableError("a server was lost");

// How long after kStart it is due.
absl::Duration Pause(const CheckpointRetry& retry, bool waiting) {
  absl::Duration pause;
  while (!retry.Due(kStart + pause, waiting)) pause += absl::Milliseconds(10);
  return pause;
}

TEST(CheckpointRetry, NothingIsDueBeforeAFailure) {
  CheckpointRetry retry(/*seed=*/1);
  EXPECT_FALSE(retry.Due(kStart, /*waiting=*/false));
  EXPECT_TRUE(retry.Due(kStart, /*waiting=*/true)) << "functions wait for a first one";
}

TEST(CheckpointRetry, WhatPassesIsTriedAgainWhatStaysIsNot) {
  CheckpointRetry retry(/*seed=*/1);
  retry.Ended(kStart, kServerLost);
  EXPECT_FALSE(retry.Due(kStart, /*waiting=*/false));
  EXPECT_TRUE(retry.Due(kStart + absl::Seconds(1), /*waiting=*/false));
  retry.Ended(kStart, kDiskFull);
  EXPECT_FALSE(retry.Due(kStart + absl::Hours(1), /*waiting=*/false));
}

TEST(CheckpointRetry, WhileFunctionsWaitPausesGrowToHalfAMinute) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    CheckpointRetry retry(seed);
    for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
      retry.Ended(kStart, kDiskFull);
      const absl::Duration pause = Pause(retry, /*waiting=*/true);
      EXPECT_GE(pause, absl::Seconds(seconds) / 2);
      EXPECT_LE(pause, absl::Seconds(seconds) + absl::Milliseconds(10));
    }
    // The second one that it takes comes soon.
    retry.Ended(kStart, absl::OkStatus());
    EXPECT_LE(Pause(retry, /*waiting=*/true), absl::Seconds(1));
    EXPECT_FALSE(retry.Due(kStart + absl::Hours(1), /*waiting=*/false));
  }
}

}  // namespace
}  // namespace mu
