#include "coordinator/core/checkpoint_rules.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using testing::StatusIs;

TEST(CheckpointRules, TheNewestStay) {
  const std::vector<KnownCheckpoint> four(4);
  EXPECT_THAT(CheckpointsToDelete(four, 3), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete(four, 1), ElementsAre(0, 1, 2)) << "the oldest first";
  EXPECT_THAT(CheckpointsToDelete(four, 4), IsEmpty());
  EXPECT_THAT(CheckpointsToDelete(four, 9), IsEmpty());
  EXPECT_THAT(CheckpointsToDelete(four, 0), IsEmpty()) << "all are kept";
  EXPECT_THAT(CheckpointsToDelete({}, 1), IsEmpty());
}

TEST(CheckpointRules, ADamagedOneStaysAndStandsForNone) {
  EXPECT_THAT(CheckpointsToDelete({{}, {}, {}, {.bad = true}}, 1), ElementsAre(0, 1));
  EXPECT_THAT(CheckpointsToDelete({{.bad = true}, {}, {}}, 1), ElementsAre(0, 1));
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

TEST(CheckpointRules, WhatFailedOnesHaveLeftGoesBeforeTheOldest) {
  const KnownCheckpoint failed = {.complete = false};
  EXPECT_THAT(CheckpointsToDelete({failed, {}, failed, {}, failed}, 1), ElementsAre(0, 2, 1))
      << "the newest may be under way";
  EXPECT_THAT(CheckpointsToDelete({failed, {}, {}}, 5), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete({failed, {.bad = true}}, 1), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete({failed, {}}, 0), IsEmpty());
  EXPECT_THAT(CheckpointsToDelete({failed, failed}, 1), IsEmpty()) << "no number is used twice";
}

TEST(CheckpointRules, AFailedOneStandsForNone) {
  const KnownCheckpoint wanted = {.complete = false, .kept = true, .point = 9};
  EXPECT_THAT(CheckpointsToDelete({wanted, {}}, 1), ElementsAre(0));
  EXPECT_THAT(CheckpointsToDelete({{.point = 4}, wanted, {}}, 1), ElementsAre(1));
  EXPECT_THAT(CheckpointsToDelete({{}, {}, wanted}, 2), IsEmpty());
}

TEST(CheckpointRules, OneIsAddedByWhoeverContinuesOrBegins) {
  CheckpointClaim claim;
  EXPECT_FALSE(claim.MustLook(/*begun=*/true));
  EXPECT_TRUE(claim.MustLook(false));
  EXPECT_THAT(claim.Looked("DIR", /*holds_checkpoints=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition, StartsWith("DIR holds checkpoints")));
  EXPECT_TRUE(claim.MustLook(false)) << "nothing has changed";
  claim.StartFresh();
  EXPECT_FALSE(claim.MustLook(false));
}

TEST(CheckpointRules, WhoeverAddsTheFirstAddsOthers) {
  CheckpointClaim claim;
  MU_EXPECT_OK(claim.Looked("DIR", /*holds_checkpoints=*/false));
  EXPECT_TRUE(claim.fresh());
  EXPECT_FALSE(claim.MustLook(false)) << "what the folder holds now is its own";
}

}  // namespace
}  // namespace mu
