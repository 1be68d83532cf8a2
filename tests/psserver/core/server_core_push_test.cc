// Pushes and assignments in every company: repeats, leases that run out, cuts, fences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/client/applied_full.h"
#include "tests/psserver/core/core_fixture.h"

namespace mu {
namespace {

using testing::HasCode;
using Begun = PushBegun::Step;
using Entered = PushEntered::Step;

class ServerCorePush : public testing::ServerCoreTest {
 protected:
  PsCallId last_call() const { return PsCallId(calls_); }
  // That this server remembers `push`, applied by partitions 0 and 1 only.
  static InheritedMemory HalfOf(const PushId& push) {
    InheritedMemory memory;
    AppliedSteps steps;
    steps.Add(push);
    const size_t number = memory.Add(std::move(steps));
    memory.Inherit(Key(0), number);
    memory.Inherit(Key(1), number);
    return memory;
  }
  PushBegun Assign(uint64_t place, uint64_t value, uint32_t partition = 0, uint32_t variable = 5) {
    MU_EXPECT_OK(core_.Admit(now_, Context()));
    return core_.BeginAssign(now_, {place, variable, partition, value, "weights"},
                             PsCallId(++calls_));
  }
};

TEST_F(ServerCorePush, IsAppliedOnce) {
  const PushAnswer first = Push({3, 0, 0});
  MU_EXPECT_OK(first.status);
  EXPECT_FALSE(first.repeated);
  EXPECT_EQ(first.counts, (PushCounts{4, 0}));
  const PushAnswer repeat = Push({3, 0, 0});
  EXPECT_TRUE(repeat.repeated);
  EXPECT_EQ(repeat.counts, (PushCounts{4, 0})) << "what the first one did";
  EXPECT_TRUE(core_.RestoreMayStart()) << "nothing is under way";
}

TEST_F(ServerCorePush, ARepeatIsAnsweredWhenTheFirstEnds) {
  AdmittedPush push = Admit({3, 0, 0});
  EXPECT_EQ(StepOf({3, 0, 0}), Begun::kWait);
  const PsCallId second = last_call();
  EXPECT_EQ(Enter(&push), Entered::kApply);
  EXPECT_EQ(StepOf({3, 0, 0}), Begun::kWait);
  const PsCallId third = last_call();
  const PushEnded ended = End(push);
  EXPECT_FALSE(ended.answer.repeated);
  ASSERT_EQ(ended.waiting.size(), 2u);
  EXPECT_EQ(ended.waiting[0].first, second);
  EXPECT_EQ(ended.waiting[1].first, third);
  EXPECT_TRUE(ended.waiting[0].second.repeated);
  MU_EXPECT_OK(ended.waiting[1].second.status);
}

TEST_F(ServerCorePush, WhatIsRefusedAfterACheckMayComeAgainAndWhoWaitedIsToldWhy) {
  const AdmittedPush push = Admit({3, 0, 0});
  EXPECT_EQ(StepOf({3, 0, 0}), Begun::kWait);
  const PushEnded ended = End(push, absl::InvalidArgumentError("NaN"));
  EXPECT_THAT(ended.answer.status, HasCode(absl::StatusCode::kInvalidArgument));
  ASSERT_EQ(ended.waiting.size(), 1u);
  EXPECT_THAT(ended.waiting[0].second.status, HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(Push({3, 0, 0}).repeated);
}

TEST_F(ServerCorePush, TheLeaseRunsOutWhileARepeatWaits) {
  AdmittedPush push = AdmitAndEnter({3, 0, 0});
  EXPECT_EQ(StepOf({3, 0, 0}), Begun::kWait);
  now_ = 1000;
  const PushEnded ended = End(push);
  EXPECT_THAT(ended.answer.status, HasCode(absl::StatusCode::kUnavailable))
      << "another server may serve in its place";
  ASSERT_EQ(ended.waiting.size(), 1u);
  EXPECT_THAT(ended.waiting[0].second.status, HasCode(absl::StatusCode::kUnavailable));
  core_.RenewLease(1000, absl::Nanoseconds(1000), kGeneration);
  EXPECT_TRUE(Push({3, 0, 0}).repeated) << "it had been applied";
}

TEST_F(ServerCorePush, TheLeaseRunsOutBeforeItIsApplied) {
  AdmittedPush push = Admit({3, 0, 0});
  now_ = 1000;
  const PushEntered entered = core_.Enter(now_, &push);
  EXPECT_EQ(entered.step, Entered::kRefuse);
  EXPECT_THAT(End(push, entered.status).answer.status, HasCode(absl::StatusCode::kUnavailable));
  core_.RenewLease(1000, absl::Nanoseconds(1000), kGeneration);
  EXPECT_FALSE(Push({3, 0, 0}).repeated);
}

TEST_F(ServerCorePush, ARepeatIsNotAcknowledgedWithoutALease) {
  MU_EXPECT_OK(Push({3, 0, 0}).status);
  core_.RenewLease(0, absl::Nanoseconds(1000), kGeneration + 1);
  EXPECT_THAT(Push({3, 0, 0}).status, HasCode(absl::StatusCode::kUnavailable))
      << "its state is of an older generation than the lease";
}

TEST_F(ServerCorePush, ACutWaitsForChangesAndNotForChecks) {
  AdmittedPush checking = Admit({3, 0, 0});
  AdmittedPush changing = AdmitAndEnter({3, 1, 0});
  ASSERT_TRUE(core_.CloseGate());
  EXPECT_FALSE(core_.CutMayBeTaken());
  EXPECT_EQ(Enter(&checking), Entered::kWait);
  MU_EXPECT_OK(End(changing).answer.status);
  ASSERT_TRUE(core_.CutMayBeTaken()) << "one that is being checked changes nothing";
  const CutMemory memory = core_.TakeCut();
  ASSERT_EQ(memory.applied.size(), 1u);
  EXPECT_EQ(memory.applied[0].begin, 1u);
  EXPECT_FALSE(core_.CloseGate()) << "one cut at a time";
  core_.OpenGate();
  EXPECT_EQ(Enter(&checking), Entered::kApply);
  MU_EXPECT_OK(End(checking).answer.status);
}

TEST_F(ServerCorePush, OneThatIsRefusedWhileTheGateIsClosedIsNotWaitedFor) {
  AdmittedPush push = Admit({3, 0, 0});
  ASSERT_TRUE(core_.CloseGate());
  End(push, absl::InvalidArgumentError("NaN"));
  EXPECT_TRUE(core_.CutMayBeTaken());
  core_.OpenGate();
}

TEST_F(ServerCorePush, AFenceWaitsForWhatIsBelowTheMarkOnly) {
  AdmittedPush below = AdmitAndEnter({3, 0, 0}), above = AdmitAndEnter({7, 0, 0});
  MU_ASSERT_OK(core_.BeginFence(now_, Context(kGeneration, 5)));
  EXPECT_FALSE(core_.FenceHolds(5));
  EXPECT_EQ(KindOf(Push({4, 0, 0}).status), pb::ERROR_STALE);
  EXPECT_EQ(KindOf(Push({3, 0, 0}).status), pb::ERROR_STALE) << "also what is in progress";
  EXPECT_EQ(StepOf({7, 0, 0}), Begun::kWait);
  const PushEnded ended = End(below);
  MU_EXPECT_OK(ended.answer.status);
  EXPECT_TRUE(core_.FenceHolds(5));
  core_.Leave();
  EXPECT_EQ(core_.pushes().ledger().entries(), 0u) << "nothing is remembered below the mark";
  EXPECT_EQ(End(above).waiting.size(), 1u);
  EXPECT_TRUE(Push({7, 0, 0}).repeated);
}

TEST_F(ServerCorePush, AFenceIsOfItsGenerationAndHoldsARestoreBack) {
  EXPECT_EQ(KindOf(core_.BeginFence(now_, Context(kGeneration - 1, 5))), pb::ERROR_STALE);
  MU_EXPECT_OK(Push({3, 0, 0}).status) << "it raised no mark";
  core_.RenewLease(0, absl::Nanoseconds(1000), kGeneration + 1);
  MU_ASSERT_OK(core_.BeginFence(now_, Context(kGeneration, 5)))
      << "the state is about to be left, and may be kept";
  ASSERT_EQ(BeginRestore(kGeneration + 1, Keep()), RestoreTurn::Step::kBegun);
  EXPECT_FALSE(core_.RestoreMayStart());
  EXPECT_TRUE(core_.FenceHolds(5));
  core_.Leave();
  EXPECT_TRUE(core_.RestoreMayStart());
}

TEST_F(ServerCorePush, PartitionsThatInheritedItAreLeftAlone) {
  Restore(kGeneration + 1, Files(), HalfOf({3, 0, 0}));
  const auto context = Context(kGeneration + 1);
  AdmittedPush push = Admit({3, 0, 0}, context);
  EXPECT_EQ(push.counts, (PushCounts{2, 2}));
  EXPECT_TRUE(push.IsInherited(Key(0)));
  EXPECT_FALSE(push.IsInherited(Key(2)));
  // The mark rises meanwhile: the memory is given up, and the push still knows.
  core_.RaiseLowWater(100);
  EXPECT_EQ(core_.pushes().inherited(), nullptr);
  EXPECT_TRUE(push.IsInherited(Key(1)));
  EXPECT_EQ(Enter(&push), Entered::kApply);
  const PushAnswer answer = End(push).answer;
  EXPECT_FALSE(answer.repeated);
  EXPECT_EQ(answer.counts, (PushCounts{2, 2}));
}

TEST_F(ServerCorePush, OneThatWasInheritedAsAWholeIsARepeat) {
  InheritedMemory memory = HalfOf({3, 0, 0});
  memory.Inherit(Key(2), 0);
  memory.Inherit(Key(3), 0);
  Restore(kGeneration + 1, Files(), std::move(memory));
  AdmittedPush push = Admit({3, 0, 0}, Context(kGeneration + 1));
  EXPECT_EQ(Enter(&push), Entered::kSkip);
  const PushAnswer answer = End(push).answer;
  EXPECT_TRUE(answer.repeated);
  EXPECT_EQ(answer.counts, (PushCounts{0, 4}));
  EXPECT_EQ(core_.pushes().ledger().entries(), 0u) << "it is remembered already";
  EXPECT_EQ(BeginRestore(kGeneration + 1, Files("others")), RestoreTurn::Step::kRefuse);
}

TEST_F(ServerCorePush, WithoutRoomItIsRefusedUntilTheMarkRises) {
  ServerCore core({.most_remembered = 1});
  Configure(&core);
  const auto begin = [&](const PushId& id) {
    return core.BeginPush(0, Context(), id, {1, [](PushPartitions::Visit) {}}, PsCallId(1));
  };
  PushBegun first = begin({3, 0, 0});
  core.Enter(0, &first.push);
  MU_ASSERT_OK(core.EndPush(0, first.push, absl::OkStatus()).answer.status);
  const PushBegun refused = begin({4, 0, 0});
  EXPECT_TRUE(IsAppliedFull(refused.answer.status)) << refused.answer.status;
  EXPECT_EQ(KindOf(refused.answer.status), pb::ERROR_MACHINE);
  EXPECT_TRUE(core.RestoreMayStart());
  core.RaiseLowWater(4);
  EXPECT_EQ(begin({4, 0, 0}).step, Begun::kApply);
}

TEST_F(ServerCorePush, ASecondValueUnderOnePlaceIsRefusedAlsoWhileTheFirstIsApplied) {
  PushBegun first = Assign(9, /*value=*/100);
  ASSERT_EQ(first.step, Begun::kApply);
  EXPECT_EQ(Assign(9, 100).step, Begun::kWait) << "a repeat";
  const PushBegun other = Assign(9, 101);
  ASSERT_EQ(other.step, Begun::kAnswer);
  EXPECT_THAT(other.answer.status, HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Assign(9, 100, 0, /*variable=*/6).answer.status,
              HasCode(absl::StatusCode::kInvalidArgument));
  const PushBegun partition = Assign(9, 102, /*partition=*/1);
  EXPECT_EQ(partition.step, Begun::kApply);
  EXPECT_EQ(Enter(&first.push), Entered::kApply);
  EXPECT_EQ(End(first.push).waiting.size(), 1u);
  EXPECT_TRUE(Assign(9, 100).answer.repeated);
  EXPECT_FALSE(core_.RestoreMayStart()) << "partition 1 is under way";
  End(partition.push);
  EXPECT_TRUE(core_.RestoreMayStart()) << "what was refused is not";
}

TEST_F(ServerCorePush, ARestoreFreesThePlacesBelowTheOlderMark) {
  core_.RaiseLowWater(20);
  const PushBegun late = Assign(9, 100);
  EXPECT_EQ(KindOf(late.answer.status), pb::ERROR_STALE) << "below the mark";
  // The restored state is older, and so is its mark: the assignment is repeated.
  Restore(kGeneration + 1, Files(), {}, /*low_water=*/5);
  const auto assign = [&](uint64_t value) {
    MU_EXPECT_OK(core_.Admit(now_, Context(kGeneration + 1)));
    return core_.BeginAssign(now_, {9, 5, 0, value, "weights"}, PsCallId(++calls_));
  };
  PushBegun again = assign(100);
  ASSERT_EQ(again.step, Begun::kApply);
  EXPECT_EQ(Enter(&again.push), Entered::kApply);
  MU_EXPECT_OK(End(again.push).answer.status);
  EXPECT_THAT(assign(101).answer.status, HasCode(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace mu
