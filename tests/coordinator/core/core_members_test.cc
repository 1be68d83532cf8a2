// Workers and servers that join, leave and are lost, as the core sees it.
#include <gmock/gmock.h>

#include "common/base/caller_gone.h"
#include "common/base/error_kind.h"
#include "common/base/version.h"
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::CoreDriver;
using ::testing::HasSubstr;
using testing::MachineFault;
using ::testing::Not;
using testing::Typed;

TEST(CoreMembers, ALostWorkersFunctionsResumeAfterTheirLastResult) {
  CoreDriver d;
  d.Serve(2);
  EXPECT_EQ(d.Schedule(3), "scheduled 1; start 1 on 0 from 0");
  EXPECT_EQ(d.Result(1, 0), "deliver 1");
  EXPECT_EQ(d.Step(event::DaemonDied{10}), "worker 0 died; start 1 on 1 from 1");
  EXPECT_EQ(d.Result(1, 0), "") << "delivered before";
  d.Result(1, 1);
  d.Result(1, 2);
  EXPECT_EQ(d.Ended(1), "finish 1 OK");
}

// By both sides' logs: the daemon's has the answer.
TEST(CoreMembers, ADaemonOfAnotherProtocolIsRefused) {
  const std::string here = absl::StrCat("the coordinator of Muster ", Version(), " understands");
  for (const pb::Role role : {pb::ROLE_WORKER, pb::ROLE_PSSERVER}) {
    CoreDriver d;
    event::Register join;
    join.request.set_role(role);
    join.request.set_incarnation(10);
    join.request.set_address("here:1");
    const auto refusal = [&] {
      EXPECT_THAT(d.Step(join), Not(HasSubstr("joins")));
      const absl::Status refused = d.Last<action::AnswerRegister>().status;
      EXPECT_EQ(d.Last<action::Note>().text, refused.message());
      EXPECT_EQ(d.Last<action::Note>().level, action::Note::Level::kWarning);
      EXPECT_THAT(refused, testing::StatusIs(absl::StatusCode::kFailedPrecondition,
                                             AllOf(HasSubstr(here), HasSubstr("the same build"))));
      EXPECT_EQ(KindOf(refused), pb::ERROR_USER) << "no use in trying again";
      return std::string(refused.message());
    };
    const std::string name = role == pb::ROLE_WORKER ? "the worker" : "the server";
    EXPECT_THAT(refusal(), HasSubstr(name + " at here:1 is of Muster from before there were "
                                            "versions (protocol 0), and "));
    join.request.set_version("99.0");
    for (const uint32_t other : {kOldestProtocol - 1, kProtocol + 1}) {
      join.request.set_protocol(other);
      EXPECT_THAT(refusal(), HasSubstr(absl::StrCat(name, " at here:1 is of Muster 99.0 (protocol ",
                                                    other, "), and ")));
    }
    for (uint32_t own = kOldestProtocol; own <= kProtocol; ++own) {
      CoreDriver other;
      join.request.set_protocol(own);
      EXPECT_THAT(other.Step(join), HasSubstr("joins"));
      MU_EXPECT_OK(other.Last<action::AnswerRegister>().status);
    }
  }
}

TEST(CoreMembers, AWorkerThatForgotItsFunctionsGetsThemAgain) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(2);
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1, Typed(pb::ERROR_NOT_INSTALLED)), "install routing on 0");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(10)), "") << "it has nothing installed";
  EXPECT_EQ(d.Installed(0, 10), "start 1 on 0 from 1");
}

TEST(CoreMembers, WhatIsCreatedMeanwhileIsInstalledNext) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Join(pb::ROLE_WORKER, 10, 0), "worker 0 joins; install routing on 0");
  EXPECT_EQ(d.Routing(2, 1), "") << "one at a time";
  EXPECT_EQ(d.Routing(3, 1), "");
  EXPECT_EQ(d.Installed(0, 10), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10), "");
}

TEST(CoreMembers, WhatAWorkerForgotWhileItWasSentMoreIsInstalledAgain) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(2);
  EXPECT_EQ(d.Define(5), "install function 5 on 0");
  EXPECT_EQ(d.Ended(1, Typed(pb::ERROR_NOT_INSTALLED)), "");
  EXPECT_EQ(d.Installed(0, 10), "install routing on 0") << "it has what is new, not the rest";
  EXPECT_EQ(d.Installed(0, 10), "install function 5 on 0");
  EXPECT_EQ(d.Installed(0, 10), "start 1 on 0 from 0");
}

TEST(CoreMembers, AWorkerThatCannotInstallGetsNothingMoreOnceItIsSetAside) {
  CoreDriver d;
  d.Serve(1);
  d.Join(pb::ROLE_WORKER, 20, 1);
  const absl::Status full = WithKind(absl::ResourceExhaustedError("its disk is full"),
                                     pb::ERROR_MACHINE, pb::ROLE_WORKER);
  ASSERT_TRUE(CallError::Of(full).answered());
  d.Installed(1, 20, full);
  ASSERT_TRUE(d.core.IsAside(WorkerId(1)));
  EXPECT_EQ(d.Routing(2, 1), "install routing on 0");
}

// 2.5 ms of the loop for each, and four may be late before a daemon counts as lost.
TEST(CoreMembers, ManyDaemonsSendHeartbeatsLessOften) {
  CoreDriver d;
  const auto heartbeat_of = [&](uint32_t worker) {
    d.Join(pb::ROLE_WORKER, 10 + worker, static_cast<int>(worker));
    return d.Last<action::AnswerRegister>().heartbeat;
  };
  uint32_t worker = 0;
  EXPECT_EQ(heartbeat_of(worker), CoreDriver::kHeartbeat);
  while (++worker < 499) heartbeat_of(worker);
  EXPECT_EQ(heartbeat_of(worker), 500 * absl::Microseconds(2500));
  while (++worker < 1200) heartbeat_of(worker);
  EXPECT_EQ(heartbeat_of(worker), CoreDriver::kTimeout / 4);
}

// It may have been started in place of one that is lost, before anybody knew.
TEST(CoreMembers, AServerWithoutAPlaceIsToTryAgain) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 300, -1), "refuse RESOURCE_EXHAUSTED");
  EXPECT_EQ(KindOf(d.Last<action::AnswerRegister>().status), pb::ERROR_MACHINE);
  EXPECT_THAT(d.Join(pb::ROLE_PSSERVER, 300, 7), HasSubstr("refuse INVALID_ARGUMENT"));
  EXPECT_EQ(KindOf(d.Last<action::AnswerRegister>().status), pb::ERROR_USER);
  d.Step(event::DaemonDied{100, "killed"});
  EXPECT_THAT(d.Join(pb::ROLE_PSSERVER, 300, -1), HasSubstr("server 0 joins"));
}

TEST(CoreMembers, OnlyAGreaterEpochHasTakenOver) {
  CoreDriver d(1, CoordinatorEpoch(5));
  for (const uint64_t epoch : {0, 4, 5}) {
    EXPECT_EQ(d.Step(event::EpochSeen{CoordinatorEpoch(epoch)}), "") << epoch;
    EXPECT_FALSE(d.core.superseded()) << epoch;
  }
  EXPECT_EQ(d.Step(event::EpochSeen{CoordinatorEpoch(6)}), "interrupt; end ABORTED");
  EXPECT_TRUE(d.core.superseded());
}

// While what an error has brought about goes on, nobody is told of it.
TEST(CoreMembers, NothingIsScheduledUntilACancellationHasEnded) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
  EXPECT_TRUE(d.core.quiet());
  d.Schedule();
  EXPECT_FALSE(d.core.quiet());
  d.Step(event::CancelEverything{});
  EXPECT_TRUE(d.core.settling());
  EXPECT_TRUE(d.core.MaySchedule({}).wait);
  EXPECT_FALSE(d.core.quiet()) << "it may still run";
  d.Step(event::Close{});
  EXPECT_FALSE(d.core.settling()) << "nobody waits for its end";
  EXPECT_THAT(d.core.MaySchedule({}).refusal, testing::HasCode(absl::StatusCode::kCancelled));
}

TEST(CoreMembers, NonsenseOfNoRunOfTheWorkerIsSaidOfItsFirst) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Schedule();
  const auto unreadable = [&](uint64_t incarnation, RunId run) {
    return d.Step(event::Unreadable{WorkerId(0), Incarnation(incarnation), run, "nonsense"});
  };
  const auto answers = [&](uint64_t function) {
    return d.core.queue().Find(FunctionId(function))->unreadable;
  };
  EXPECT_EQ(unreadable(9, RunId(99)), "") << "of a former incarnation";
  EXPECT_EQ(unreadable(10, RunId(99)), "worker 0 unreadable");
  EXPECT_EQ(answers(1), 1u);
  EXPECT_EQ(answers(2), 0u);
  d.Join(pb::ROLE_WORKER, 20, 0);
  d.Installed(0, 20);
  EXPECT_EQ(unreadable(20, d.runs.at(FunctionId(2)).run), "worker 0 unreadable");
  EXPECT_EQ(answers(1), 1u);
  EXPECT_EQ(answers(2), 1u);
}

TEST(CoreMembers, AnInstallationOfAnotherIncarnationIsNotTaken) {
  CoreDriver d;
  d.Serve(0);
  d.Schedule();
  d.Join(pb::ROLE_WORKER, 20, 0);
  EXPECT_EQ(d.Installed(0, 19), "");
  EXPECT_EQ(d.Installed(0, 20), "start 1 on 0 from 0");
}

TEST(CoreMembers, ARunsEndOfAnotherIncarnationIsNotTaken) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(2);
  const StartRun old = d.runs.at(FunctionId(1));
  EXPECT_EQ(d.Join(pb::ROLE_WORKER, 20, 0),
            "worker 0 replaced; worker 0 joins; install routing on 0");
  EXPECT_EQ(d.Installed(0, 20), "start 1 on 0 from 0");
  EXPECT_EQ(d.Step(event::RunEnded{old, CallError::Of(MachineFault())}), "");
  EXPECT_EQ(d.core.workers().size(), 1u) << "the broken call was the older process's";
}

TEST(CoreMembers, AWorkerLeavesWhenItsLastResultsHaveArrived) {
  CoreDriver d;
  d.Serve(2);
  d.Schedule(2);
  EXPECT_EQ(d.Leave(pb::ROLE_WORKER, 10, 0, 1), "");
  event::Results back = {.start = d.runs.at(FunctionId(1)), .handed_back = true};
  back.steps.push_back({.step = 0, .samples = 4});
  EXPECT_EQ(d.Step(back), "deliver 1");
  EXPECT_EQ(d.Ended(1), "worker 0 left; goodbye 1; start 1 on 1 from 1");
  EXPECT_EQ(d.Leave(pb::ROLE_WORKER, 10, 0, 2), "goodbye 2") << "asked twice";
}

TEST(CoreMembers, WhoIsNoDaemonTakesNobodysLeave) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_EQ(d.Leave(pb::ROLE_UNSPECIFIED, 10, 0, 1), "goodbye 1");
  EXPECT_EQ(d.Leave(pb::ROLE_COORDINATOR, 10, 0, 2), "goodbye 2");
  EXPECT_EQ(d.core.workers().size(), 1u);
}

TEST(CoreMembers, AWorkerWhoseRunsDoNotEndLeavesAfterTheTimeout) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(2);
  EXPECT_EQ(d.Leave(pb::ROLE_WORKER, 10, 0, 1), "");
  EXPECT_EQ(d.TickAfter(absl::Minutes(1)), "") << "the coordinator stood still";
  EXPECT_EQ(d.core.alarm(), d.now + CoreDriver::kTimeout);
  for (int i = 0; i < 9; ++i) {
    d.Beat(pb::ROLE_WORKER, 10, 0);
    d.Beat(pb::ROLE_PSSERVER, 100, 0);
    EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "");
  }
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "worker 0 left; goodbye 1");
}

TEST(CoreMembers, TheCoordinatorsOwnStandstillLosesNobody) {
  CoreDriver d;
  d.Serve(1);
  d.TickAfter(absl::Seconds(1));
  EXPECT_EQ(d.TickAfter(absl::Minutes(5)), "");
  for (int i = 0; i < 8; ++i) EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "") << i;
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "worker 0 silent; server 0 silent; interrupt; pause");
}

// Its end comes on the stream, so it answers; without a stream nobody knows.
TEST(CoreMembers, AWorkerThatGaveItsRunsUpIsWell) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule(3);
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1, CallerGoneError()), "start 1 on 0 from 1");
  EXPECT_EQ(d.Ended(1, absl::CancelledError("it broke")), "worker 0 unreachable");
}

TEST(CoreMembers, AnInstallationThatTheStandstillBrokeIsMadeAgain) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Join(pb::ROLE_WORKER, 10, 0), "worker 0 joins; install routing on 0");
  d.now += absl::Minutes(1);
  EXPECT_EQ(d.Installed(0, 10, MachineFault()), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10, MachineFault()), "worker 0 unreachable")
      << "this one was not under way then";
}

TEST(CoreMembers, AServerThatLeavesTakesNothingAlong) {
  CoreDriver d(2);
  d.Serve(1);
  d.Schedule(2);
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 100, 0, 1),
            "pause; stop run 1 on 0; round 2 from 0: keep 0, keep 1");
  d.Routing(2, 2);
  EXPECT_EQ(d.Restored(2), "save 1");
  EXPECT_EQ(d.Last<action::Save>().generation, Generation(2));
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "write manifest");
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}),
            "committed 1; server 0 left; goodbye 1");
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "refuse FAILED_PRECONDITION");
  EXPECT_EQ(KindOf(d.Last<action::AnswerRegister>().status), pb::ERROR_USER) << "of its own will";
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0), "server 0 joins; round 3 from 1: restore 0, keep 1");
}

// Whoever waits for a checkpoint takes it again, as after a loss.
TEST(CoreMembers, AServerThatLeavesEndsTheCheckpointThatIsSaved) {
  CoreDriver d(2);
  d.Serve(1);
  d.Schedule(2);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 100, 0, 1),
            "aborted 1; done 2 UNAVAILABLE; pause; stop run 1 on 0; round 2 from 0: keep 0, "
            "keep 1");
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1), absl::AbortedError("ended")}), "") << "late";
  d.Routing(2, 2);
  EXPECT_EQ(d.Want(3, {.kind = ServerTask::Kind::kSave}), "") << "it waits for the leave";
  EXPECT_EQ(d.Restored(2), "save 2");
  // Another one's leave waits for the same checkpoint.
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 101, 1, 2), "");
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(2)}), "write manifest");
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(2)}),
            "committed 2; server 0 left; goodbye 1; server 1 left; goodbye 2");
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 201, 1),
            "server 1 joins; round 3 from 2: restore 0, restore 1");
}

// What all servers have saved is complete: a leave does not undo it.
TEST(CoreMembers, AServerThatLeavesLetsAManifestBeWritten) {
  CoreDriver d(2);
  d.Serve(1);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "write manifest");
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 100, 0, 1), "pause; round 2 from 0: keep 0, keep 1");
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}), "committed 1; done 2 OK");
  d.Routing(2, 2);
  EXPECT_EQ(d.Restored(2), "save 2");
}

// Of a job that is over daemons take their leave; they wait for the next coordinator of another.
TEST(CoreMembers, DaemonsOfAJobThatIsOverAreDismissed) {
  for (const bool dismiss : {false, true}) {
    CoreDriver d;
    d.Serve(1);
    d.Beat(pb::ROLE_WORKER, 10, 0);
    EXPECT_FALSE(d.Last<action::AnswerHeartbeat>().dismissed) << "the job goes on";
    d.Step(event::Close{dismiss});
    d.Beat(pb::ROLE_WORKER, 10, 0);
    EXPECT_EQ(d.Last<action::AnswerHeartbeat>().dismissed, dismiss);
    d.Beat(pb::ROLE_PSSERVER, 100, 0);
    EXPECT_EQ(d.Last<action::AnswerHeartbeat>().dismissed, dismiss);
    d.Step(event::Close{});
    d.Beat(pb::ROLE_PSSERVER, 100, 0);
    EXPECT_EQ(d.Last<action::AnswerHeartbeat>().dismissed, dismiss) << "the end comes after it";
    d.Leave(pb::ROLE_WORKER, 10, 0, 1);
    EXPECT_EQ(d.Last<action::AnswerLeave>().call, CallId(1));
    d.Leave(pb::ROLE_PSSERVER, 100, 0, 2);
    EXPECT_EQ(d.Last<action::AnswerLeave>().call, CallId(2));
    EXPECT_TRUE(d.core.membership().All().empty());
  }
}

TEST(CoreMembers, ANewerCoordinatorEndsThisOne) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Want(2, {.kind = ServerTask::Kind::kSave});
  EXPECT_EQ(d.Step(event::EpochSeen{CoordinatorEpoch(2)}),
            "aborted 1; done 2 ABORTED; interrupt; finish 1 ABORTED; end ABORTED");
  EXPECT_EQ(d.Want(3, {.kind = ServerTask::Kind::kSave}), "done 3 ABORTED");
  EXPECT_EQ(d.Step(event::EpochSeen{CoordinatorEpoch(3)}), "") << "once";
}

}  // namespace
}  // namespace mu
