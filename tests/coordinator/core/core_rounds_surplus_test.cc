// Synchronous rounds with backups: who starts more than a round needs, and when.
#include <gmock/gmock.h>

#include <string>

#include "tests/coordinator/core/core_rounds_fixture.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class CoreRoundsSurplus : public testing::CoreRoundsTest {};

TEST_F(CoreRoundsSurplus, MoreThanARoundNeedsStartOnlyWhereNothingRuns) {
  Serve(1, {.replicas = 1, .backups = 1}, /*functions=*/2);
  EXPECT_TRUE(Runs(1));
  EXPECT_FALSE(Runs(2)) << "the only worker has something to do";
}

// What it starts in vain it would still compute when the next round begins.
TEST_F(CoreRoundsSurplus, WhoHasGivenGivesAgainOnlyWhereAContributionIsLate) {
  Serve(2, {.replicas = 2, .backups = 1}, /*functions=*/6);
  const auto round = [this](uint64_t first, uint64_t second) {
    d_.now += absl::Seconds(1);
    EXPECT_EQ(Result(first, 0), absl::StrCat("keep ", first));
    EXPECT_EQ(d_.Ended(first), "");
    EXPECT_THAT(Result(second, 0), HasSubstr("commit"));
    d_.Ended(second);
    Committed();
  };
  round(1, 2);
  round(3, 4);
  EXPECT_TRUE(Runs(5) && Runs(6));
  for (int i = 0; i < 2; ++i) d_.Schedule();
  d_.now += absl::Seconds(1);
  EXPECT_EQ(Result(5, 0), "keep 5");
  EXPECT_EQ(d_.Ended(5), "");
  EXPECT_EQ(d_.core.alarm() - d_.now, absl::Seconds(1)) << "twice the median of 1 s";
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1) - absl::Milliseconds(1)), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(1)), "start 7 on 0 from 0");
  d_.now += absl::Seconds(1);
  EXPECT_THAT(Result(7, 0), HasSubstr("commit 3: 5 (1), 7 (1)")) << "nobody waits for it longer";
  Committed();
  EXPECT_EQ(d_.core.rounds().late, 1u);
}

TEST_F(CoreRoundsSurplus, WhoHasNotGivenNeedsNobodyToBeLate) {
  Serve(2, {.replicas = 2, .backups = 1}, /*functions=*/3);
  d_.now += absl::Seconds(1);
  EXPECT_EQ(Result(2, 0), "keep 2");
  EXPECT_EQ(d_.Ended(2), "");
  EXPECT_THAT(d_.Step(event::DaemonDied{10, "killed"}), HasSubstr("start 1 on 1 from 0"));
  d_.Join(pb::ROLE_WORKER, 20, 0);
  EXPECT_EQ(d_.Installed(0, 20), "start 3 on 0 from 0");
}

TEST_F(CoreRoundsSurplus, AsManyAreGivenAgainAsAreLate) {
  Serve(3, {.replicas = 3, .backups = 2}, /*functions=*/5);
  d_.now += absl::Seconds(1);
  Result(1, 0);
  d_.Ended(1);
  Result(2, 0);
  EXPECT_EQ(d_.Ended(2), "");
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1)), "start 4 on 0 from 0");
  EXPECT_FALSE(Runs(5)) << "in place of function 3";
}

// It has results: what it computes is not late, however long its function takes.
TEST_F(CoreRoundsSurplus, WhatWaitsBehindOtherStepsOfItsWorkerIsNotLate) {
  Serve(2, {.replicas = 3, .backups = 1}, /*functions=*/4);
  EXPECT_TRUE(Runs(1) && Runs(2) && Runs(3));
  const WorkerId twice = d_.runs.at(FunctionId(3)).worker;
  const uint64_t before = d_.runs.at(FunctionId(1)).worker == twice ? 1 : 2;
  d_.now += absl::Seconds(1);
  Result(before, 0);
  d_.Ended(before);
  Result(3 - before, 0);
  EXPECT_EQ(d_.Ended(3 - before), "");
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1)), "") << "a second after the step before it";
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1)),
            absl::StrCat("start 4 on ", 1 - twice.value(), " from 0"));
}

// Two workers; function 2 was too late for the first round, and still runs on the second one.
class AfterALateStep : public testing::CoreRoundsTest {
 protected:
  AfterALateStep() {
    Serve(2, {.replicas = 2, .backups = 1}, /*functions=*/3);
    slow_ = d_.runs.at(FunctionId(2));
    EXPECT_EQ(slow_.worker, WorkerId(1));
    d_.now += absl::Seconds(1);
    EXPECT_EQ(Result(1, 0), "keep 1");
    EXPECT_EQ(d_.Ended(1), "");
    EXPECT_EQ(d_.TickAfter(absl::Seconds(1)), "start 3 on 0 from 0");
    for (int i = 0; i < 4; ++i) d_.Schedule();  // 4 to 7
    d_.now += absl::Seconds(1);
    EXPECT_THAT(Result(3, 0), HasSubstr("commit 1: 1 (1), 3 (1)"));
    d_.Ended(3);
    EXPECT_THAT(Committed(), HasSubstr("start 2 on 0 from 0; start 4 on 0 from 0"));
  }
  std::string SlowOneEnds(absl::Duration after) {
    d_.now += after;
    return d_.Step(event::RunEnded{slow_, CallError::Of(absl::OkStatus())});
  }

  StartRun slow_;
};

// Or each round would have to do without one of the two, which is still busy with what was for the
// round before.
TEST_F(AfterALateStep, WhoWasTooLateWaitsForTheNextRound) {
  EXPECT_EQ(SlowOneEnds(absl::Milliseconds(500)), "");
  d_.now += absl::Milliseconds(500);
  EXPECT_EQ(Result(2, 0), "keep 2");
  EXPECT_EQ(d_.Ended(2), "");
  d_.now += absl::Seconds(1);
  EXPECT_THAT(Result(4, 0), HasSubstr("commit 2: 2 (1), 4 (1)"));
  d_.Ended(4);
  EXPECT_THAT(Committed(), HasSubstr("start 5 on 0 from 0; start 6 on 1 from 0"));
  EXPECT_EQ(d_.core.rounds().late, 1u);
}

TEST_F(AfterALateStep, WhoWasTooLateTakesTheStepOfWhoIsNow) {
  EXPECT_EQ(SlowOneEnds(absl::Milliseconds(500)), "");
  EXPECT_EQ(d_.TickAfter(absl::Seconds(1)), "");
  EXPECT_EQ(d_.TickAfter(absl::Milliseconds(500)), "start 5 on 1 from 0");
}

// Of equal workers the last one is always a little late.
TEST_F(AfterALateStep, WhoWasHardlyLateBeginsWithTheOthers) {
  EXPECT_EQ(SlowOneEnds(absl::Milliseconds(249)), "start 5 on 1 from 0");
}

}  // namespace
}  // namespace mu
