// Clocks of updates, and pushes that are too late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/client/too_late.h"
#include "tests/psserver/core/core_fixture.h"

namespace mu {
namespace {

using testing::HasCode;
using Kind = PartitionKey::Kind;
using Entered = PushEntered::Step;

constexpr ClockKey kVariable = {Kind::kVariable, 3}, kTable = {Kind::kTable, 3};

class ServerCoreStaleness : public testing::ServerCoreTest {
 protected:
  // A push of both, computed from values that were read at these clocks.
  AdmittedPush Admit(uint64_t function, std::optional<uint64_t> variable,
                     std::optional<uint64_t> table, std::optional<uint32_t> max = std::nullopt) {
    PushBegun begun =
        core_.BeginPush(now_, Context(), {function, 0, 0}, {1, [](auto visit) { visit(Key(0)); }},
                        PsCallId(++calls_), {{{kVariable, variable}, {kTable, table}}, max});
    EXPECT_EQ(begun.step, PushBegun::Step::kApply) << begun.answer.status;
    return std::move(begun.push);
  }
  // From its beginning to its end.
  PushAnswer Push(uint64_t function, std::optional<uint64_t> variable,
                  std::optional<uint64_t> table, std::optional<uint32_t> max = std::nullopt) {
    AdmittedPush push = Admit(function, variable, table, max);
    const absl::Status entered = core_.Enter(now_, &push).status;
    return End(push, entered).answer;
  }
};

TEST_F(ServerCoreStaleness, AClockCountsTheUpdatesOfItsVariableOrTable) {
  EXPECT_EQ(core_.ReadClock(kVariable), 0u);
  MU_EXPECT_OK(Push(1, 0, 0).status);
  EXPECT_EQ(core_.ReadClock(kVariable), 1u);
  EXPECT_EQ(core_.ReadClock(kTable), 1u);
  EXPECT_EQ(core_.ReadClock({Kind::kVariable, 4}), 0u);
  MU_EXPECT_OK(ServerCoreTest::Push({2, 0, 0}).status);
  EXPECT_EQ(core_.ReadClock(kVariable), 1u) << "nobody asked for the other push's lateness";
}

TEST_F(ServerCoreStaleness, AnAnswerSaysByHowManyUpdatesTheLatestGradientWas) {
  for (uint64_t function = 1; function <= 3; ++function)
    EXPECT_EQ(Push(function, function - 1, function - 1).late, 0u);
  EXPECT_EQ(Push(4, 1, 3).late, 2u);
  EXPECT_EQ(Push(5, 4, 1).late, 3u);
  EXPECT_EQ(Push(6, std::nullopt, 4).late, 1u) << "of the one whose clock is known";
  EXPECT_EQ(Push(7, std::nullopt, std::nullopt).late, std::nullopt);
  EXPECT_EQ(Push(8, 1000, 1000).late, 0u) << "a clock that has not come yet";
}

// It may be in the values that were read, or not.
TEST_F(ServerCoreStaleness, AnUpdateInProgressIsOneThatAPullLacks) {
  AdmittedPush first = Admit(1, 0, 0);
  EXPECT_EQ(Enter(&first), Entered::kApply);
  EXPECT_EQ(core_.ReadClock(kVariable), 0u);
  AdmittedPush second = Admit(2, 0, 0);
  EXPECT_EQ(Enter(&second), Entered::kApply);
  EXPECT_EQ(second.staleness.gradients[0].late, 1u) << "the first comes before it";
  End(second);
  EXPECT_EQ(core_.ReadClock(kVariable), 1u);
  End(first);
  EXPECT_EQ(core_.ReadClock(kVariable), 2u);
}

TEST_F(ServerCoreStaleness, WhatIsTooLateIsRefusedAndMayComeAgainWithNewerValues) {
  MU_EXPECT_OK(Push(1, 0, 0).status);
  MU_EXPECT_OK(Push(2, 1, 1).status);
  MU_EXPECT_OK(Push(3, 1, 2, /*max=*/1).status) << "late by what is allowed";
  const PushAnswer refused = Push(4, 3, 1, /*max=*/1);
  EXPECT_THAT(refused.status, HasCode(absl::StatusCode::kAborted));
  EXPECT_TRUE(IsTooLate(refused.status));
  EXPECT_EQ(KindOf(refused.status), pb::ERROR_STALE);
  EXPECT_THAT(refused.status.message(),
              ::testing::HasSubstr("table with id 3 is late by 2 updates, and may be by 1"));
  EXPECT_EQ(core_.ReadClock(kVariable), 3u) << "nothing of it was applied";
  const PushAnswer again = Push(4, 3, 3, /*max=*/1);
  MU_EXPECT_OK(again.status);
  EXPECT_FALSE(again.repeated) << "the refusal is not remembered";
  EXPECT_EQ(again.late, 0u);
  EXPECT_TRUE(core_.RestoreMayStart()) << "nothing is under way";
}

TEST_F(ServerCoreStaleness, NothingIsTooLateWhereNoneIsLate) {
  MU_EXPECT_OK(Push(1, 0, 0, /*max=*/0).status);
  EXPECT_TRUE(IsTooLate(Push(2, 0, 0, /*max=*/0).status));
  MU_EXPECT_OK(Push(2, 1, 1, /*max=*/0).status);
}

// The second attempt at a step comes to a server that applied the first.
TEST_F(ServerCoreStaleness, ARepeatIsNeverTooLate) {
  MU_EXPECT_OK(Push(1, 0, 0, /*max=*/0).status);
  MU_EXPECT_OK(Push(2, 1, 1, /*max=*/0).status);
  const PushBegun repeat =
      core_.BeginPush(now_, Context(), {1, 0, 0}, {1, [](auto visit) { visit(Key(0)); }},
                      PsCallId(++calls_), {{{kVariable, 0}}, 0});
  ASSERT_EQ(repeat.step, PushBegun::Step::kAnswer);
  MU_EXPECT_OK(repeat.answer.status);
  EXPECT_TRUE(repeat.answer.repeated);
  EXPECT_EQ(repeat.answer.late, std::nullopt);
  EXPECT_EQ(core_.ReadClock(kVariable), 2u);
}

// Pushes that wait for a cut are judged when they enter.
TEST_F(ServerCoreStaleness, IsJudgedWhenItEnters) {
  AdmittedPush waits = Admit(1, 0, 0, /*max=*/0);
  ASSERT_TRUE(core_.CloseGate());
  EXPECT_EQ(Enter(&waits), Entered::kWait);
  core_.OpenGate();
  MU_EXPECT_OK(Push(2, 0, 0).status);
  EXPECT_EQ(Enter(&waits), Entered::kRefuse);
}

TEST_F(ServerCoreStaleness, AClockGoesOnWhereTheRestoredStateStood) {
  MU_EXPECT_OK(Push(1, 0, 0).status);
  Restore(kGeneration + 1, Keep());
  EXPECT_EQ(core_.ReadClock(kVariable), 1u) << "the state stays";
  Restore(kGeneration + 2, Initial());
  EXPECT_EQ(core_.ReadClock(kVariable), 0u);
  ASSERT_EQ(BeginRestore(kGeneration + 3, Files()), RestoreTurn::Step::kBegun);
  core_.StartRestore();
  UpdateClocks clocks;
  clocks.Set(kVariable, 7);
  MU_EXPECT_OK(core_.EndRestore(Restored(), {}, std::move(clocks)));
  EXPECT_EQ(core_.ReadClock(kVariable), 7u);
  EXPECT_EQ(core_.ReadClock(kTable), 0u);
}

// What was in progress when the state was replaced ends in the new one.
TEST(UpdateClocks, AnUpdateOfAnEarlierStateCountsNothing) {
  UpdateClocks clocks;
  clocks.Begin(kVariable);
  clocks.Reset();
  clocks.End(kVariable);
  EXPECT_EQ(clocks.Read(kVariable), 0u);
  clocks.Set(kVariable, 5);
  clocks.End(kVariable);
  EXPECT_EQ(clocks.Read(kVariable), 5u);
  EXPECT_EQ(clocks.LatenessOf(kVariable, 5), 0u);
}

}  // namespace
}  // namespace mu
