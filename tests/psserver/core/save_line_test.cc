#include "psserver/core/save_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/status.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::HasCode;
using Step = SaveLine::Turn::Step;

pb::SaveReply Reply(uint64_t updates) {
  pb::SaveReply reply;
  reply.set_updates(updates);
  return reply;
}

TEST(SaveLineTest, RepeatsOfAnAttemptShareItsResult) {
  SaveLine line;
  EXPECT_EQ(line.Ask(PsCallId(1), 5, 1).step, Step::kRun);
  EXPECT_EQ(line.Ask(PsCallId(2), 5, 1).step, Step::kWait);
  EXPECT_EQ(line.Look(PsCallId(1)).step, Step::kWait) << "its turn is said once";
  EXPECT_EQ(line.Look(PsCallId(2)).step, Step::kWait);
  line.End(Reply(7));
  const SaveLine::Turn shared = line.Look(PsCallId(2));
  ASSERT_EQ(shared.step, Step::kDone);
  EXPECT_EQ(shared.result->updates(), 7u);
  EXPECT_EQ(line.Ask(PsCallId(3), 5, 1).result->updates(), 7u) << "after it has ended as well";
  EXPECT_EQ(line.Ask(PsCallId(4), 6, 1).step, Step::kRun);
  EXPECT_EQ(line.Ask(PsCallId(5), 5, 1).result->updates(), 7u) << "and while others run";
  line.End(Reply(8));
  EXPECT_EQ(line.Ask(PsCallId(6), 0, 1).step, Step::kRun);
  EXPECT_EQ(line.Ask(PsCallId(7), 0, 1).step, Step::kWait);
  line.End(Reply(9));
  EXPECT_EQ(line.Look(PsCallId(7)).step, Step::kRun) << "0 is no attempt";
}

TEST(SaveLineTest, AFailureIsSharedByThoseWhoWaitedAndMayBeRepeated) {
  SaveLine line;
  line.Ask(PsCallId(1), 5, 1);
  line.Ask(PsCallId(2), 5, 1);
  line.End(absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(line.Look(PsCallId(2)).result, HasCode(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(line.Ask(PsCallId(3), 5, 1).step, Step::kRun);
}

TEST(SaveLineTest, OneAtATimeInTheOrderInWhichTheyAsked) {
  SaveLine line;
  EXPECT_EQ(line.Ask(PsCallId(1), 11, 1).step, Step::kRun);
  EXPECT_EQ(line.Ask(PsCallId(2), 12, 1).step, Step::kWait);
  EXPECT_EQ(line.Ask(PsCallId(3), 13, 1).step, Step::kWait);
  EXPECT_EQ(line.Ask(PsCallId(4), 12, 1).step, Step::kWait);
  line.End(Reply(1));
  EXPECT_EQ(line.Look(PsCallId(3)).step, Step::kWait);
  EXPECT_EQ(line.Look(PsCallId(2)).step, Step::kRun);
  line.End(Reply(2));
  EXPECT_EQ(line.Look(PsCallId(4)).result->updates(), 2u) << "the same attempt";
  EXPECT_EQ(line.Look(PsCallId(3)).step, Step::kRun);
  line.End(Reply(3));
  EXPECT_FALSE(line.running());
}

TEST(SaveLineTest, ANewerCoordinatorsEndsTheOneThatRunsAndGoesFirst) {
  SaveLine line;
  line.Ask(PsCallId(1), 11, 1);
  line.Ask(PsCallId(2), 12, 1);
  MU_EXPECT_OK(line.GoOn());
  line.Ask(PsCallId(3), 13, 2);
  EXPECT_THAT(line.GoOn(), HasCode(absl::StatusCode::kAborted));
  line.End(line.GoOn());
  EXPECT_EQ(line.Look(PsCallId(2)).step, Step::kWait);
  EXPECT_EQ(line.Look(PsCallId(3)).step, Step::kRun);
  MU_EXPECT_OK(line.GoOn());
  line.End(Reply(3));
  EXPECT_EQ(line.Look(PsCallId(2)).step, Step::kRun);
}

TEST(SaveLineTest, CancelEndsTheOneThatRunsAndNoOther) {
  SaveLine line;
  line.Cancel("nobody is there");
  line.Ask(PsCallId(1), 11, 1);
  MU_EXPECT_OK(line.GoOn());
  line.Ask(PsCallId(2), 12, 1);
  line.Cancel("a restore");
  line.Cancel("another reason");
  EXPECT_THAT(line.GoOn(),
              testing::StatusIs(absl::StatusCode::kAborted, ::testing::HasSubstr("a restore")));
  line.End(line.GoOn());
  EXPECT_EQ(line.Look(PsCallId(2)).step, Step::kRun);
  MU_EXPECT_OK(line.GoOn());
}

// A copy of an old request that comes late must not write over an older checkpoint's file.
TEST(SaveLineTest, SixtyFourResultsAreRemembered) {
  SaveLine line;
  for (uint64_t i = 1; i <= 65; ++i) {
    ASSERT_EQ(line.Ask(PsCallId(i), i, 1).step, Step::kRun);
    line.End(Reply(i));
  }
  EXPECT_EQ(line.Ask(PsCallId(100), 2, 1).result->updates(), 2u);
  EXPECT_EQ(line.Ask(PsCallId(101), 1, 1).step, Step::kRun);
}

}  // namespace
}  // namespace mu
