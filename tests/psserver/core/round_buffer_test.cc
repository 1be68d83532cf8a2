// What a server keeps of synchronous rounds, and that each is applied once.
#include "psserver/core/round_buffer.h"

#include <gmock/gmock.h>

#include "tests/psserver/core/core_fixture.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using Place = RoundBuffer::Place;
using Step = RoundBuffer::Turn::Step;
using testing::HasCode;

constexpr size_t kMost = 2;
const PushId kFirst{1, 0, 0}, kSecond{2, 0, 0}, kThird{3, 0, 0};

RoundBuffer::Gradients Number(int number) { return std::make_shared<int>(number); }
std::vector<int> NumbersOf(const RoundBuffer::Turn& turn) {
  std::vector<int> numbers;
  for (const auto& chosen : turn.chosen)
    numbers.push_back(chosen == nullptr ? 0 : *static_cast<const int*>(chosen.get()));
  return numbers;
}

TEST(RoundBufferTest, AppliesTheSetOnceInItsOrder) {
  RoundBuffer buffer;
  EXPECT_EQ(buffer.PlaceOf(1, kSecond, kMost), Place::kFree);
  buffer.Keep(1, kSecond, Number(2));
  buffer.Keep(1, kFirst, Number(1));
  EXPECT_EQ(buffer.PlaceOf(1, kFirst, kMost), Place::kRepeat);
  EXPECT_EQ(buffer.PlaceOf(1, kThird, kMost), Place::kFull);
  const auto turn = buffer.Begin(1, {kFirst, kThird, kSecond});
  ASSERT_EQ(turn.step, Step::kApply);
  EXPECT_THAT(NumbersOf(turn), ElementsAre(1, 0, 2)) << "the third does not touch this server";
  EXPECT_EQ(buffer.Begin(1, {kFirst}).step, Step::kWait);
  buffer.Applied(7);
  EXPECT_EQ(buffer.kept(), 0u);
  const auto repeat = buffer.Begin(1, {kFirst});
  EXPECT_EQ(repeat.step, Step::kRepeat);
  EXPECT_EQ(repeat.updates, 7u);
  EXPECT_EQ(buffer.Begin(2, {}).step, Step::kApply) << "of a round that touches nothing here";
  buffer.Applied(0);
  EXPECT_EQ(buffer.Begin(1, {kFirst}).step, Step::kStale);
}

TEST(RoundBufferTest, RefusesWhatIsOfAnotherRound) {
  RoundBuffer buffer;
  buffer.Keep(5, kFirst, Number(1));
  EXPECT_EQ(buffer.PlaceOf(4, kSecond, kMost), Place::kLate);
  buffer.Begin(5, {kFirst});
  EXPECT_EQ(buffer.PlaceOf(5, kSecond, kMost), Place::kLate) << "the round is decided without it";
  EXPECT_EQ(buffer.PlaceOf(5, kFirst, kMost), Place::kRepeat);
  EXPECT_EQ(buffer.PlaceOf(6, kSecond, kMost), Place::kEarly) << "round 5 is being applied";
  buffer.Applied(1);
  EXPECT_EQ(buffer.PlaceOf(5, kFirst, kMost), Place::kLate);
  EXPECT_EQ(buffer.PlaceOf(6, kFirst, kMost), Place::kFree);
  EXPECT_EQ(buffer.PlaceOf(7, kFirst, kMost), Place::kEarly) << "round 6 has not been applied";
}

TEST(RoundBufferTest, ANewerRoundDropsWhatWasKept) {
  RoundBuffer buffer;
  buffer.Keep(1, kFirst, Number(1));
  buffer.Keep(2, kSecond, Number(2));
  EXPECT_THAT(NumbersOf(buffer.Begin(2, {kFirst, kSecond})), ElementsAre(0, 2));
}

TEST(RoundBufferTest, FencesAndRestoresDropWhatIsKept) {
  RoundBuffer buffer;
  buffer.Keep(3, kFirst, Number(1));
  buffer.Keep(3, kSecond, Number(2));
  buffer.DropBelow(2);
  EXPECT_EQ(buffer.kept(), 1u);
  EXPECT_EQ(buffer.PlaceOf(3, kSecond, kMost), Place::kRepeat);
  buffer.Begin(3, {kSecond});
  buffer.DropBelow(9);
  EXPECT_EQ(buffer.kept(), 1u) << "what is decided is applied";
  buffer.Applied(1);
  buffer.Reset();
  EXPECT_EQ(buffer.PlaceOf(2, kFirst, kMost), Place::kFree) << "the state went back";
}

TEST(RoundBufferTest, ARoundThatIsBeingAppliedIsForgottenWithTheRest) {
  RoundBuffer buffer;
  buffer.Keep(3, kFirst, Number(1));
  const auto turn = buffer.Begin(3, {kFirst});
  buffer.Reset();
  EXPECT_THAT(NumbersOf(turn), ElementsAre(1)) << "whoever applies it has it still";
  EXPECT_EQ(buffer.kept(), 0u);
  EXPECT_TRUE(buffer.applying());
  EXPECT_EQ(buffer.Begin(1, {}).step, Step::kWait);
  buffer.Applied(1);
  EXPECT_FALSE(buffer.applying());
  EXPECT_EQ(buffer.PlaceOf(1, kFirst, kMost), Place::kFree);
  EXPECT_EQ(buffer.Begin(3, {kFirst}).step, Step::kApply) << "no repeat";
  buffer.Applied(1);
  EXPECT_EQ(buffer.Begin(3, {kFirst}).step, Step::kRepeat) << "reset once";
}

class ServerRounds : public testing::ServerCoreTest {
 protected:
  PushBegun BeginContribution(const PushId& id, uint64_t round,
                              const pb::RequestContext& context = Context()) {
    const auto for_each = [](PushPartitions::Visit visit) { visit(Key(0)); };
    return core_.BeginContribution(now_, context, id, {1, for_each}, round, kMost,
                                   PsCallId(++calls_));
  }
  // The answer to a push whose check ends so.
  PushAnswer Contribute(const PushId& id, uint64_t round,
                        const absl::Status& checked = absl::OkStatus()) {
    PushBegun begun = BeginContribution(id, round);
    if (begun.step == PushBegun::Step::kAnswer) return begun.answer;
    return core_.Keep(now_, id, round, kMost, checked, Number(1)).answer;
  }
  RoundTurn BeginRound(uint64_t round, const std::vector<PushId>& set) {
    return core_.BeginRound(now_, Context(), round, set);
  }
};

TEST_F(ServerRounds, KeepsAndAppliesWithoutAMemoryOfPushes) {
  EXPECT_THAT(Contribute(kFirst, 1).status, testing::IsOk());
  EXPECT_TRUE(Contribute(kFirst, 1).repeated);
  const RoundTurn turn = BeginRound(1, {kFirst});
  ASSERT_EQ(turn.step, RoundTurn::Step::kApply);
  const PushAnswer answer = core_.EndRound(now_, 3);
  EXPECT_THAT(answer.status, testing::IsOk());
  EXPECT_EQ(answer.counts.updates, 3u);
  const RoundTurn repeat = BeginRound(1, {kFirst});
  ASSERT_EQ(repeat.step, RoundTurn::Step::kAnswer);
  EXPECT_EQ(repeat.answer.counts.updates, 3u);
  EXPECT_EQ(core_.pushes().ledger().entries(), 0u);
  EXPECT_THAT(Contribute(kFirst, 1).status, HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(KindOf(Contribute(kFirst, 1).status), pb::ERROR_STALE);
}

TEST_F(ServerRounds, WhatFailsItsCheckIsNotKept) {
  EXPECT_THAT(Contribute(kFirst, 1, absl::InvalidArgumentError("NaN")).status,
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(core_.contributions(), 0u);
  EXPECT_TRUE(core_.RestoreMayStart()) << "nothing is under way";
}

TEST_F(ServerRounds, WhatIsFencedWhileItIsCheckedIsNotKept) {
  const PushBegun begun = BeginContribution(kFirst, 1);
  ASSERT_EQ(begun.step, PushBegun::Step::kApply);
  core_.RaiseLowWater(2);
  EXPECT_THAT(core_.Keep(now_, kFirst, 1, kMost, absl::OkStatus(), Number(1)).answer.status,
              HasCode(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(core_.contributions(), 0u);
  EXPECT_THAT(Contribute(kFirst, 1).status, HasCode(absl::StatusCode::kFailedPrecondition));
}

// A check may take longer than callers wait: they ask again, and it must not begin again.
TEST_F(ServerRounds, RepeatsWaitForTheFirstCheck) {
  using PushStep = PushBegun::Step;
  ASSERT_EQ(BeginContribution(kFirst, 1).step, PushStep::kApply);
  const uint64_t first = calls_;
  EXPECT_EQ(BeginContribution(kFirst, 1).step, PushStep::kWait);
  EXPECT_EQ(BeginContribution(kFirst, 1).step, PushStep::kWait);
  EXPECT_EQ(BeginContribution(kSecond, 1).step, PushStep::kApply) << "another one does not wait";
  const PushEnded ended = core_.Keep(now_, kFirst, 1, kMost, absl::OkStatus(), Number(1));
  MU_EXPECT_OK(ended.answer.status);
  EXPECT_FALSE(ended.answer.repeated);
  ASSERT_EQ(ended.waiting.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ended.waiting[i].first, PsCallId(first + 1 + i));
    MU_EXPECT_OK(ended.waiting[i].second.status);
    EXPECT_TRUE(ended.waiting[i].second.repeated);
  }
  EXPECT_EQ(BeginContribution(kFirst, 1).step, PushStep::kAnswer);

  EXPECT_EQ(BeginContribution(kSecond, 1).step, PushStep::kWait);
  const PushEnded refused =
      core_.Keep(now_, kSecond, 1, kMost, absl::InvalidArgumentError("NaN"), nullptr);
  ASSERT_EQ(refused.waiting.size(), 1u);
  EXPECT_THAT(refused.waiting[0].second.status, HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(BeginContribution(kSecond, 1).step, PushStep::kApply) << "it may come again";
  core_.Keep(now_, kSecond, 1, kMost, absl::OkStatus(), Number(2));
  EXPECT_TRUE(core_.RestoreMayStart()) << "nothing is under way";
}

TEST_F(ServerRounds, ARoundThatWasFencedIsNotApplied) {
  EXPECT_THAT(Contribute(kFirst, 1).status, testing::IsOk());
  core_.RaiseLowWater(2);
  EXPECT_EQ(KindOf(BeginRound(1, {kFirst}).answer.status), pb::ERROR_STALE);
  EXPECT_TRUE(core_.RestoreMayStart()) << "nothing is under way";
}

TEST_F(ServerRounds, ACutWaitsForARoundAndARoundForACut) {
  EXPECT_THAT(Contribute(kFirst, 1).status, testing::IsOk());
  ASSERT_TRUE(core_.CloseGate());
  EXPECT_EQ(BeginRound(1, {kFirst}).step, RoundTurn::Step::kWait);
  core_.OpenGate();
  EXPECT_EQ(BeginRound(1, {kFirst}).step, RoundTurn::Step::kApply);
  ASSERT_TRUE(core_.CloseGate());
  EXPECT_FALSE(core_.CutMayBeTaken());
  EXPECT_FALSE(core_.RestoreMayStart());
  core_.EndRound(now_, 1);
  EXPECT_TRUE(core_.CutMayBeTaken());
  EXPECT_TRUE(core_.RestoreMayStart());
}

TEST_F(ServerRounds, ANewerCoordinatorMayReplaceTheStateWhileARoundIsApplied) {
  EXPECT_THAT(Contribute(kFirst, 1).status, testing::IsOk());
  ASSERT_EQ(BeginRound(1, {kFirst}).step, RoundTurn::Step::kApply);
  const pb::RequestContext newer = Context(kGeneration + 1, /*low_water=*/0, /*epoch=*/2);
  MU_ASSERT_OK(core_.AdmitConfigure(newer, 0));
  MU_ASSERT_OK_AND_ASSIGN(const bool may_replace, core_.BeginConfigure(newer));
  ASSERT_TRUE(may_replace);
  core_.EndConfigure(newer, DefinitionsChange::kReplaced);
  EXPECT_EQ(core_.contributions(), 0u);
  ASSERT_EQ(core_.BeginRestore(newer, Initial(), /*verified=*/true).step,
            RestoreTurn::Step::kBegun);
  EXPECT_FALSE(core_.RestoreMayStart()) << "the round is under way";
  EXPECT_THAT(core_.EndRound(now_, 3).status, HasCode(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(core_.RestoreMayStart());
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));

  // The rounds of the new state begin with the first.
  ASSERT_EQ(BeginContribution(kSecond, 1, newer).step, PushBegun::Step::kApply);
  MU_EXPECT_OK(core_.Keep(now_, kSecond, 1, kMost, absl::OkStatus(), Number(2)).answer.status);
  const RoundTurn turn = core_.BeginRound(now_, newer, 1, {kSecond});
  ASSERT_EQ(turn.step, RoundTurn::Step::kApply);
  ASSERT_EQ(turn.chosen.size(), 1u);
  EXPECT_NE(turn.chosen[0], nullptr);
  MU_EXPECT_OK(core_.EndRound(now_, 1).status);
}

// It is being restored already, which waits for the round.
TEST_F(ServerRounds, TheStateMayBeReplacedWhileARestoreWaitsForARound) {
  ASSERT_EQ(BeginRound(1, {}).step, RoundTurn::Step::kApply);
  ASSERT_EQ(BeginRestore(kGeneration + 1, Initial()), RestoreTurn::Step::kBegun);
  const pb::RequestContext newer = Context(kGeneration + 1, /*low_water=*/0, /*epoch=*/2);
  MU_ASSERT_OK(core_.AdmitConfigure(newer, 0));
  MU_ASSERT_OK(core_.BeginConfigure(newer));
  core_.EndConfigure(newer, DefinitionsChange::kReplaced);
  EXPECT_THAT(core_.EndRound(now_, 0).status, HasCode(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(core_.RestoreMayStart());
  core_.StartRestore();
  EXPECT_THAT(core_.EndRestore(Restored(), {}), HasCode(absl::StatusCode::kUnavailable))
      << "it was replaced meanwhile";
}

TEST_F(ServerRounds, ARestoreDropsWhatIsKept) {
  EXPECT_THAT(Contribute(kFirst, 4).status, testing::IsOk());
  BeginRestore(kGeneration + 1, Keep());
  core_.StartRestore();
  EXPECT_EQ(core_.contributions(), 0u);
}

}  // namespace
}  // namespace mu
