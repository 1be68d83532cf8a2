#include "coordinator/core/checkpoint_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CheckpointRules, TheNewestStay) {
  const std::vector<KnownCheckpoint> four(4);
  EXPECT_THAT(CheckpointsToDelete(four, 3), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete(four, 1), ElementsAre(2, 1, 0));
  EXPECT_THAT(CheckpointsToDelete(four, 4), IsEmpty());
  EXPECT_THAT(CheckpointsToDelete(four, 9), IsEmpty());
  EXPECT_THAT(CheckpointsToDelete(four, 0), IsEmpty()) << "all are kept";
  EXPECT_THAT(CheckpointsToDelete({}, 1), IsEmpty());
}

TEST(CheckpointRules, ADamagedOneStaysAndStandsForNone) {
  EXPECT_THAT(CheckpointsToDelete({{}, {}, {}, {.bad = true}}, 1), ElementsAre(1, 0));
  EXPECT_THAT(CheckpointsToDelete({{.bad = true}, {}, {}}, 1), ElementsAre(1, 0));
}

TEST(CheckpointRules, WhatAnybodyCountsOnStaysBesideThem) {
  EXPECT_THAT(CheckpointsToDelete({{.kept = true}, {}, {.point = 1}, {}}, 1), ElementsAre(1));
  EXPECT_THAT(CheckpointsToDelete({{}, {.point = 1}}, 1), ElementsAre(0))
      << "the newest is counted, whoever wants it";
}

TEST(CheckpointRules, OfThoseThatServersMayGoBackToTheFirstChoiceStays) {
  EXPECT_THAT(CheckpointsToDelete({{.point = 4}, {.point = 5}}, 1), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete({{.point = 5}, {.point = 4}, {}}, 1), ElementsAre(1))
      << "a program went back to an older one";
  EXPECT_THAT(CheckpointsToDelete({{.point = 4}, {.bad = true, .point = 5}, {}}, 1), ElementsAre(1))
      << "they cannot go back to a damaged one";
}

TEST(CheckpointRules, OneIsAddedByWhoeverContinuesOrBegins) {
  EXPECT_TRUE(MayAddCheckpoint(/*begun=*/false, /*any_complete=*/false));
  EXPECT_TRUE(MayAddCheckpoint(true, true));
  EXPECT_TRUE(MayAddCheckpoint(true, false));
  EXPECT_FALSE(MayAddCheckpoint(false, true));
}

}  // namespace
}  // namespace mu
