// Restores and Configure: how they begin, are repeated and end, with pushes and saves under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/psserver/core/core_fixture.h"

namespace mu {
namespace {

using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;
using Begun = PushBegun::Step;
using Entered = PushEntered::Step;
using Step = RestoreTurn::Step;
using Turn = SaveLine::Turn::Step;

class ServerCoreRestore : public testing::ServerCoreTest {
 protected:
  static constexpr uint64_t kNext = kGeneration + 1;
  SaveLine::Turn AskSave(uint64_t attempt, const pb::RequestContext& context = Context()) {
    return core_.AskSave(now_, context, attempt, PsCallId(++calls_));
  }
  void ConfigureInEpoch(uint64_t epoch, bool replaced) {
    const auto context = Context(kNext, 0, epoch);
    MU_ASSERT_OK(core_.AdmitConfigure(context, 0));
    MU_ASSERT_OK_AND_ASSIGN(const bool may_replace, core_.BeginConfigure(context));
    EXPECT_TRUE(may_replace || !replaced);
    core_.EndConfigure(context, replaced ? DefinitionsChange::kReplaced : DefinitionsChange::kNone);
  }
};

// Its values are initial ones: a worker would compute with them, and push to servers that keep
// their state.
TEST_F(ServerCoreRestore, ANewServerThatIsToBeRestoredServesNobodyBefore) {
  for (const bool follows : {false, true}) {
    ServerCore core({.leased = true, .registers = true});
    MU_ASSERT_OK(core.SetIdentity(/*job=*/1, /*epoch=*/1, /*index=*/0));
    core.RenewLease(/*sent_ns=*/0, absl::Nanoseconds(1000), kGeneration);
    MU_ASSERT_OK(core.AdmitConfigure(Context(kNext), 0));
    MU_ASSERT_OK(core.BeginConfigure(Context(kNext)).status());
    core.EndConfigure(Context(kNext), DefinitionsChange::kAdded, follows);
    EXPECT_THAT(core.Admit(now_, Context()),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("of generation")));
    const absl::Status served = core.Admit(now_, Context(kNext));
    EXPECT_EQ(served.ok(), !follows) << served;
    if (!follows) continue;
    EXPECT_THAT(served, HasCode(absl::StatusCode::kUnavailable));
    // A Configure that comes late, from before the loss.
    EXPECT_FALSE(core.AdmitConfigure(Context(), 0).ok());
    // Nor does it take its initial values for a state to keep.
    EXPECT_THAT(core.BeginRestore(Context(kNext), Keep(), true).status,
                HasCode(absl::StatusCode::kUnavailable));
    ASSERT_EQ(core.BeginRestore(Context(kNext), Files(), true).step, Step::kBegun);
    core.StartRestore();
    MU_ASSERT_OK(core.EndRestore(Restored(), {}));
    MU_EXPECT_OK(core.Admit(now_, Context(kNext)));
    // One that comes twice changes nothing.
    MU_EXPECT_OK(core.AdmitConfigure(Context(kNext), 0));
    core.EndConfigure(Context(kNext), DefinitionsChange::kNone, follows);
    MU_EXPECT_OK(core.Admit(now_, Context(kNext)));
  }
}

TEST_F(ServerCoreRestore, APushThatWasAdmittedBeforeChangesNothing) {
  AdmittedPush push = Admit({3, 0, 0});
  ASSERT_EQ(BeginRestore(kNext, Initial()), Step::kBegun);
  EXPECT_FALSE(core_.RestoreMayStart());
  EXPECT_THAT(Push({3, 1, 0}, Context(kNext)).status, HasCode(absl::StatusCode::kUnavailable));
  const PushEntered entered = core_.Enter(now_, &push);
  EXPECT_EQ(entered.step, Entered::kRefuse);
  EXPECT_THAT(End(push, entered.status).answer.status, HasCode(absl::StatusCode::kUnavailable));
  ASSERT_TRUE(core_.RestoreMayStart());
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));
  EXPECT_FALSE(Push({3, 0, 0}, Context(kNext)).repeated);
}

TEST_F(ServerCoreRestore, APushThatChangedTheStateBeforeIsNotAcknowledged) {
  for (const bool keep : {false, true}) {
    const uint64_t generation = core_.generation();
    const auto context = Context(generation);
    AdmittedPush push = AdmitAndEnter({3, 0, 0}, context);
    EXPECT_EQ(StepOf({3, 0, 0}, context), Begun::kWait);
    ASSERT_EQ(BeginRestore(generation + 1, keep ? Keep() : Initial()), Step::kBegun);
    const PushEnded ended = End(push);
    EXPECT_THAT(ended.answer.status, HasCode(absl::StatusCode::kUnavailable));
    ASSERT_EQ(ended.waiting.size(), 1u);
    EXPECT_THAT(ended.waiting[0].second.status, HasCode(absl::StatusCode::kUnavailable));
    core_.StartRestore();
    MU_ASSERT_OK(core_.EndRestore(Restored(), {}));
    EXPECT_EQ(Push({3, 0, 0}, Context(generation + 1)).repeated, keep)
        << "a state that was kept contains it";
    core_.RaiseLowWater(3);
    Restore(generation + 2, Initial());
  }
}

// The look at whether updates would be dropped, and the beginning, are one decision.
TEST_F(ServerCoreRestore, WithinAGenerationAnUpdateIsEitherRefusedOrKeepsTheRestoreOut) {
  AdmittedPush early = Admit({3, 0, 0});
  ASSERT_EQ(BeginRestore(kGeneration, Initial()), Step::kBegun) << "the first of its generation";
  EXPECT_EQ(Enter(&early), Entered::kRefuse);
  End(early, absl::UnavailableError("refused"));
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));

  ServerCore other({.leased = false});
  Configure(&other);
  PushBegun begun =
      other.BeginPush(0, Context(), {3, 0, 0}, {1, [](PushPartitions::Visit) {}}, PsCallId(1));
  ASSERT_EQ(other.Enter(0, &begun.push).step, Entered::kApply);
  EXPECT_EQ(KindOf(other.BeginRestore(Context(), Initial(), true).status), pb::ERROR_STALE)
      << "an update is being applied";
  MU_EXPECT_OK(other.EndPush(0, begun.push, absl::OkStatus()).answer.status);
}

TEST_F(ServerCoreRestore, ARepeatGetsTheSameAnswerAndAnythingElseIsRefused) {
  ASSERT_EQ(BeginRestore(kNext, Files()), Step::kBegun);
  EXPECT_EQ(BeginRestore(kNext, Files()), Step::kRefuse) << "the first is under way";
  EXPECT_THAT(refused_, HasCode(absl::StatusCode::kUnavailable));
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(/*updates=*/17), {}));
  EXPECT_EQ(BeginRestore(kNext, Files(), /*verified=*/false), Step::kAnswer)
      << "no file is looked at for a repeat";
  EXPECT_EQ(reply_.updates(), 17u);
  EXPECT_EQ(BeginRestore(kNext, Files("older")), Step::kRefuse);
  EXPECT_EQ(KindOf(refused_), pb::ERROR_STALE);
  EXPECT_EQ(BeginRestore(kNext, Keep()), Step::kKept);
  EXPECT_EQ(BeginRestore(kGeneration, Keep()), Step::kRefuse);
  EXPECT_EQ(KindOf(refused_), pb::ERROR_STALE);
}

TEST_F(ServerCoreRestore, FilesAreVerifiedFirstIfTheStateWouldBeMissed) {
  MU_ASSERT_OK(Push({3, 0, 0}).status);
  EXPECT_EQ(BeginRestore(kNext, Files(), /*verified=*/false), Step::kVerify);
  Restore(kNext, Initial());
  ASSERT_EQ(BeginRestore(kNext + 1, Files(), /*verified=*/false), Step::kBegun)
      << "nothing but initial values";
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));
  MU_ASSERT_OK(Push({3, 0, 0}, Context(kNext + 1)).status);
  EXPECT_EQ(BeginRestore(kNext + 2, Files("other"), /*verified=*/false), Step::kVerify);
  MU_EXPECT_OK(Push({3, 1, 0}, Context(kNext + 1)).status) << "it serves meanwhile";
  EXPECT_EQ(BeginRestore(kNext + 2, Files("other"), /*verified=*/true), Step::kBegun);
}

// The next round of a recovery that a loss interrupted.
TEST_F(ServerCoreRestore, FilesThatWereLoadedAreNotLoadedAgain) {
  Restore(kNext, Files(), {}, /*low_water=*/2);
  AdmittedPush push = Admit({3, 0, 0}, Context(kNext));
  ASSERT_EQ(BeginRestore(kNext + 1, Files(), /*verified=*/false, /*low_water=*/2), Step::kIsHere);
  EXPECT_FALSE(core_.RestoreMayStart());
  EXPECT_EQ(Enter(&push), Entered::kRefuse) << "of the round before";
  End(push, absl::UnavailableError("refused"));
  ASSERT_TRUE(core_.RestoreMayStart());
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(reply_, {}));
  EXPECT_THAT(Push({3, 0, 0}, Context(kNext)).status,
              HasCode(absl::StatusCode::kFailedPrecondition));
  ASSERT_EQ(BeginRestore(kNext + 2, Files(), true, /*low_water=*/3), Step::kIsHere) << "and again";
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(reply_, {}));
  EXPECT_EQ(KindOf(Push({2, 0, 0}, Context(kNext + 2)).status), pb::ERROR_STALE)
      << "the mark rises with it";
  MU_EXPECT_OK(Push({3, 0, 0}, Context(kNext + 2)).status);
  EXPECT_EQ(BeginRestore(kNext + 3, Files(), true, /*low_water=*/3), Step::kBegun)
      << "an update has changed it";
}

TEST_F(ServerCoreRestore, WhatIsNotQuiteThatStateIsLoaded) {
  Restore(kNext, Files());
  ASSERT_EQ(BeginRestore(kNext + 1, Files("other")), Step::kBegun);
  core_.StartRestore();
  EXPECT_FALSE(core_.EndRestore(absl::DataLossError("damaged"), {}).ok());
  Restore(kNext + 2, Files("other"), {}, /*low_water=*/0);  // the restore before has failed
  Restore(kNext + 3, Initial());
  Restore(kNext + 4, Files("other"), {}, /*low_water=*/5);
  Restore(kNext + 5, Files("other"), {}, /*low_water=*/4);  // below 5 it would refuse
  core_.EndConfigure(Context(kNext + 5), DefinitionsChange::kAdded);
  Restore(kNext + 6, Files("other"), {}, /*low_water=*/5);  // what was added may be in the files
  Restore(kNext + 7, Keep(), {}, /*low_water=*/5);
  EXPECT_EQ(BeginRestore(kNext + 8, Files("other"), true, /*low_water=*/5), Step::kIsHere)
      << "keeping it changes nothing";
}

TEST_F(ServerCoreRestore, AStateWhoseRestoreFailedIsNotServedAndNotKept) {
  ASSERT_EQ(BeginRestore(kNext, Files()), Step::kBegun);
  core_.StartRestore();
  EXPECT_THAT(core_.EndRestore(absl::DataLossError("damaged"), {}),
              HasCode(absl::StatusCode::kDataLoss));
  EXPECT_THAT(Push({3, 0, 0}, Context(kNext)).status, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(AskSave(1, Context(kNext)).result.status(), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(BeginRestore(kNext + 1, Keep()), Step::kRefuse);
  EXPECT_THAT(refused_, HasCode(absl::StatusCode::kUnavailable));
  Restore(kNext, Files());
  MU_EXPECT_OK(Push({3, 0, 0}, Context(kNext)).status) << "the same again may succeed";
}

TEST_F(ServerCoreRestore, KeepingTheStateTakesNoFiles) {
  RestoreAsked both = Keep();
  both.has_files = true;
  EXPECT_EQ(BeginRestore(kNext, both), Step::kRefuse);
  EXPECT_THAT(refused_, HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(ServerCoreRestore, TheMemoryOfPushesFollowsTheState) {
  MU_ASSERT_OK(Push({3, 0, 0}).status);
  core_.RaiseLowWater(3);
  Restore(kNext, Keep(), {}, /*low_water=*/2);
  EXPECT_TRUE(Push({3, 0, 0}, Context(kNext)).repeated);
  EXPECT_EQ(KindOf(Push({2, 0, 0}, Context(kNext)).status), pb::ERROR_STALE)
      << "a mark of a kept state does not fall";
  Restore(kNext + 1, Initial(), {}, /*low_water=*/1);
  EXPECT_FALSE(Push({3, 0, 0}, Context(kNext + 1)).repeated);
  EXPECT_FALSE(Push({2, 0, 0}, Context(kNext + 1)).repeated);
  EXPECT_EQ(KindOf(Push({0, 0, 0}, Context(kNext + 1)).status), pb::ERROR_STALE);
}

TEST_F(ServerCoreRestore, ASaveThatTwoCallersShareIsEndedByIt) {
  ASSERT_EQ(AskSave(5).step, Turn::kRun);
  ASSERT_EQ(AskSave(5).step, Turn::kWait);
  const PsCallId second(calls_);
  ASSERT_EQ(AskSave(6).step, Turn::kWait);
  const PsCallId third(calls_);
  MU_ASSERT_OK(core_.AdmitCut(now_, Context()));
  ASSERT_TRUE(core_.CloseGate());
  ASSERT_EQ(BeginRestore(kNext, Initial()), Step::kBegun);
  EXPECT_FALSE(core_.RestoreMayStart()) << "a cut is being taken";
  EXPECT_THAT(core_.SaveGoesOn(), StatusIs(absl::StatusCode::kAborted, HasSubstr("restored")));
  core_.OpenGate();
  core_.Leave();
  EXPECT_TRUE(core_.RestoreMayStart()) << "the writer is not waited for";
  core_.EndSave(absl::AbortedError("ended"));
  EXPECT_THAT(core_.LookAtSave(second).result, HasCode(absl::StatusCode::kAborted));
  ASSERT_EQ(core_.LookAtSave(third).step, Turn::kRun);
  EXPECT_THAT(core_.AdmitCut(now_, Context()), HasCode(absl::StatusCode::kFailedPrecondition))
      << "of the state that is gone";
}

TEST_F(ServerCoreRestore, ALateCopyEndsNoSave) {
  Restore(kNext, Files());
  ASSERT_EQ(AskSave(5, Context(kNext)).step, Turn::kRun);
  EXPECT_EQ(BeginRestore(kNext, Files()), Step::kAnswer);
  EXPECT_EQ(BeginRestore(kGeneration, Files()), Step::kRefuse);
  MU_EXPECT_OK(core_.SaveGoesOn());
}

TEST_F(ServerCoreRestore, ANewerCoordinatorsConfigureLeavesASaveAloneUntilItRestores) {
  ASSERT_EQ(AskSave(5).step, Turn::kRun);
  ASSERT_EQ(AskSave(6).step, Turn::kWait);
  const PsCallId waiting(calls_);
  ConfigureInEpoch(2, /*replaced=*/true);
  MU_EXPECT_OK(core_.SaveGoesOn()) << "it reads partitions that it holds itself";
  core_.EndSave(pb::SaveReply());
  ASSERT_EQ(core_.LookAtSave(waiting).step, Turn::kRun);
  EXPECT_EQ(KindOf(core_.AdmitCut(now_, Context())), pb::ERROR_STALE) << "of the older coordinator";
}

TEST_F(ServerCoreRestore, PartitionsThatAreConfiguredAnewServeOnlyAfterARestore) {
  MU_ASSERT_OK(Push({3, 0, 0}).status);
  AdmittedPush push = AdmitAndEnter({3, 1, 0});
  ConfigureInEpoch(2, /*replaced=*/true);
  EXPECT_THAT(End(push).answer.status, HasCode(absl::StatusCode::kUnavailable));
  EXPECT_EQ(core_.BeginRestore(Context(kNext, 0, 2), Keep(), true).step, Step::kRefuse)
      << "there is nothing to keep";
  const RestoreTurn turn = core_.BeginRestore(Context(kNext, 0, 2), Files(), /*verified=*/false);
  ASSERT_EQ(turn.step, Step::kBegun) << "nor anything that would be missed";
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));
  EXPECT_FALSE(Push({3, 0, 0}, Context(kNext, 0, 2)).repeated);
}

TEST_F(ServerCoreRestore, OneCoordinatorReplacesNothing) {
  MU_ASSERT_OK(core_.AdmitConfigure(Context(), 0));
  MU_ASSERT_OK_AND_ASSIGN(const bool may_replace, core_.BeginConfigure(Context()));
  EXPECT_FALSE(may_replace);
  EXPECT_THAT(core_.BeginConfigure(Context(kGeneration, 0, /*epoch=*/0)),
              HasCode(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ServerCoreRestore, TheSamePartitionsAreKeptByANewerCoordinator) {
  MU_ASSERT_OK(Push({3, 0, 0}).status);
  ConfigureInEpoch(2, /*replaced=*/false);
  ASSERT_EQ(core_.BeginRestore(Context(kNext, 0, 2), Keep(), true).step, Step::kBegun);
  core_.StartRestore();
  MU_ASSERT_OK(core_.EndRestore(Restored(), {}));
  EXPECT_TRUE(Push({3, 0, 0}, Context(kNext, 0, 2)).repeated);
}

TEST_F(ServerCoreRestore, ARestoreThatAConfigureOvertakesFails) {
  ASSERT_EQ(BeginRestore(kNext, Files()), Step::kBegun);
  core_.StartRestore();
  ConfigureInEpoch(2, /*replaced=*/true);
  EXPECT_THAT(core_.EndRestore(Restored(), {}), HasCode(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Push({3, 0, 0}, Context(kNext, 0, 2)).status,
              HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(ServerCoreRestore, ItDoesNotServeAnOlderStateThanTheLeaseIsFor) {
  core_.RenewLease(0, absl::Nanoseconds(1000), kGeneration + 2);
  Restore(kNext, Keep());
  EXPECT_THAT(Push({3, 0, 0}, Context(kNext)).status, HasCode(absl::StatusCode::kUnavailable));
  Restore(kGeneration + 2, Keep());
  MU_EXPECT_OK(Push({3, 0, 0}, Context(kGeneration + 2)).status);
}

}  // namespace
}  // namespace mu
