// The servers' state as the core sees it: recovery, dispatch afterwards, assignments.
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::Attempt;
using testing::CoreDriver;
using testing::MachineFault;
using testing::Typed;

TEST(CoreServers, ALostServerIsRestoredAndWhatItLacksRunsAgain) {
  CoreDriver d(2);
  d.Serve(1);
  d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_EQ(d.Step(event::DaemonDied{100}), "server 0 died; interrupt; pause");
  EXPECT_FALSE(d.core.done()) << "the finished function will run again";
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 1 steps of 1 functions since the beginning will run again; round 2 "
            "from 0: restore 0, restore 1");
  d.Routing(2, 2);
  EXPECT_EQ(d.Installed(0, 10), "") << "not before all servers serve";
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; start 1 on 0 from 0");
}

TEST(CoreServers, NothingIsStartedBeforeWorkersKnowTheNewServers) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2");
  EXPECT_EQ(d.Routing(2, 2), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10), "start 1 on 0 from 0");
}

TEST(CoreServers, AnAnswerOfAnOlderRoundIsNotTaken) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since the beginning will run again; round 2 "
            "from 0: restore 0");
  d.Step(event::DaemonDied{200});
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 300, 0), "server 0 joins; round 3 from 0: restore 0");
  EXPECT_EQ(d.Restored(2), "");
  EXPECT_EQ(
      d.Step(event::Restored{Generation(2), CallError::Of(absl::InternalError("late")), {}, ""}),
      "");
  EXPECT_EQ(d.Restored(3), "use routing; serve in 3");
}

// A process that lost its place without being known to be dead may serve until its lease ends.
TEST(CoreServers, AReplacementServesWhenTheOldLeaseHasEnded) {
  CoreDriver d;
  d.Serve(0);
  d.now += absl::Seconds(3);
  d.Beat(pb::ROLE_PSSERVER, 100, 0);
  d.now += absl::Seconds(1);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 replaced; interrupt; pause; server 0 joins; 0 steps of 0 functions since the "
            "beginning will run again; round 2 from "
            "0: restore 0");
  EXPECT_EQ(d.Restored(2), "");
  EXPECT_EQ(d.core.alarm(), absl::UnixEpoch() + absl::Seconds(13));
  EXPECT_EQ(d.TickAfter(absl::Seconds(8)), "");
  d.Beat(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "use routing; serve in 2");
}

TEST(CoreServers, ALateAnswerOfAnEarlierRoundTakesNoOnesPlace) {
  CoreDriver d;
  d.Serve(0);
  d.now += absl::Seconds(1);
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_THAT(d.Join(pb::ROLE_PSSERVER, 300, 0), ::testing::HasSubstr("round 3"));
  EXPECT_EQ(d.Restored(3), "") << "the lease of the one that was replaced has not run out";
  EXPECT_EQ(d.Restored(2), "");
  EXPECT_EQ(d.Step(event::Restored{Generation(2), CallError::Of(absl::InternalError("late"))}), "");
  d.TickAfter(absl::Seconds(8));
  d.Beat(pb::ROLE_PSSERVER, 300, 0);
  EXPECT_EQ(d.TickAfter(absl::Seconds(5)), "use routing; serve in 3");
}

TEST(CoreServers, AReplacementServesAtOnceWhenTheOldProcessIsDead) {
  CoreDriver d;
  d.Serve(0);
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "");
  EXPECT_EQ(d.Step(event::DaemonDied{100}), "use routing; serve in 2");
}

TEST(CoreServers, RoundsThatFailComeMoreAndMoreSlowlyUntilTheServersServe) {
  CoreDriver d;
  d.Serve(0);
  uint64_t generation = 1, server = 200;
  const auto pause = [&] {
    d.Beat(pb::ROLE_PSSERVER, server, 0);
    d.Step(event::Restored{Generation(++generation), CallError::Of(MachineFault()), {}, ""});
    const absl::Duration wait = d.core.alarm() - d.now;
    EXPECT_EQ(d.TickAfter(wait), absl::StrCat("round ", generation + 1, " from 0: restore 0"));
    return wait;
  };
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  absl::Duration last;
  for (int i = 0; i < 10; ++i) {
    last = pause();
    EXPECT_GE(last, std::min(absl::Milliseconds(100) * (1 << i), absl::Milliseconds(2500))) << i;
    EXPECT_LE(last, std::min(absl::Milliseconds(200) * (1 << i), absl::Seconds(5))) << i;
  }
  EXPECT_NE(last, pause()) << "two coordinators do not keep step";
  d.Restored(++generation);
  EXPECT_TRUE(d.core.serving());
  d.Step(event::DaemonDied{200});
  d.Join(pb::ROLE_PSSERVER, server = 300, 0);
  EXPECT_LE(pause(), absl::Milliseconds(200));
}

TEST(CoreServers, AFailedRestoreIsTriedAgainOrEndsByItsFault) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  const auto fail = [&](uint64_t generation, absl::Status status) {
    return d.Step(
        event::Restored{Generation(generation), CallError::Of(std::move(status)), {}, ""});
  };
  EXPECT_EQ(fail(2, absl::UnavailableError("no answer")), "");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(99)), "");
  EXPECT_EQ(d.TickAfter(d.core.alarm() - d.now), "round 3 from 0: restore 0");
  EXPECT_EQ(fail(3, Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)),
            "server 0 cannot_read; interrupt");
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0), "refuse FAILED_PRECONDITION");
  EXPECT_EQ(KindOf(d.Last<action::AnswerRegister>().status), pb::ERROR_STALE) << "it must end";
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 300, 0), "server 0 joins; round 4 from 0: restore 0");
  EXPECT_EQ(fail(4, absl::InvalidArgumentError("another type")), "interrupt; end INVALID_ARGUMENT");
}

TEST(CoreServers, WithoutRecoveryALostServerEndsTheJob) {
  CoreDriver d;
  d.Serve(1, /*recovery=*/false);
  d.Schedule();
  EXPECT_EQ(d.Step(event::DaemonDied{100}),
            "server 0 died; interrupt; finish 1 UNAVAILABLE; end UNAVAILABLE");
  EXPECT_EQ(KindOf(d.core.ended()), pb::ERROR_MACHINE);
}

// Servers that nobody has given anything have nothing to lose.
TEST(CoreServers, ALossWhileTheClusterGathersEndsNothing) {
  CoreDriver d(2);
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0), "server 0 replaced; interrupt; server 0 joins");
  EXPECT_EQ(d.Step(event::DaemonDied{200}), "server 0 died; interrupt");
  d.Join(pb::ROLE_PSSERVER, 300, 0);
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 300, 0, 1), "server 0 left; interrupt; goodbye 1");
  d.Join(pb::ROLE_PSSERVER, 400, 0);
  std::string silent;
  for (int i = 0; i < 20 && silent.empty(); ++i) silent = d.TickAfter(absl::Seconds(1));
  EXPECT_EQ(silent, "server 0 silent; interrupt");
  MU_EXPECT_OK(d.core.ended());
  d.Join(pb::ROLE_PSSERVER, 500, 0);
  d.Join(pb::ROLE_PSSERVER, 501, 1);
  d.Step(event::CatalogChanged{.parameters = 1});
  EXPECT_EQ(d.Want(1, {}), "configure in 1");
  EXPECT_EQ(d.Step(event::Configured{d.Last<action::Configure>().attempt}),
            "use routing; done 1 OK");
  const std::vector<MemberFailure> failures = d.core.failures().failures();
  EXPECT_EQ(failures.size(), 4u);
  for (const MemberFailure& failure : failures) EXPECT_GE(failure.recovered_seconds, 0);
  EXPECT_EQ(d.Step(event::DaemonDied{500}), "server 0 died; interrupt; end UNAVAILABLE")
      << "now there is something to lose";
}

// A coordinator that was started again, and a server that was quicker than those with a place.
TEST(CoreServers, AFreshServerMovesWhereAFormerOneHasItsPlace) {
  CoreDriver d(2, CoordinatorEpoch(2));
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 300, -1), "server 0 joins");
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "server 0 replaced; interrupt; server 0 joins");
  const auto fresh = [&](int had) {
    return d.Join(pb::ROLE_PSSERVER, 300, had, 0, /*may_move=*/true);
  };
  EXPECT_EQ(fresh(0), "server 1 joins");
  EXPECT_EQ(fresh(0), "") << "it asks again";
  EXPECT_EQ(d.Last<action::AnswerRegister>().index, 1u);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 101, 1), "server 1 replaced; interrupt; server 1 joins");
  EXPECT_EQ(fresh(1), "refuse RESOURCE_EXHAUSTED");
  MU_EXPECT_OK(d.core.ended());
  // Where the state is recovered, it is one more server that has none.
  d.Step(event::EnableRecovery{});
  d.Step(event::CatalogChanged{.parameters = 1});
  d.Want(1, {});
  d.Step(event::Configured{d.Last<action::Configure>().attempt});
  EXPECT_EQ(d.Step(event::DaemonDied{101}), "server 1 died; interrupt; pause");
  EXPECT_THAT(fresh(1), ::testing::HasSubstr("server 1 joins"));
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 101, 1), "refuse FAILED_PRECONDITION")
      << "what it holds is of before";
}

// A program without recovery would wait for the next server for ever.
TEST(CoreServers, ALossWhileSomebodyWaitsForTheServersEndsTheJob) {
  CoreDriver d(2);
  d.Want(1, {});
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  EXPECT_EQ(d.Step(event::DaemonDied{100}),
            "server 0 died; interrupt; done 1 UNAVAILABLE; end UNAVAILABLE");
}

TEST(CoreServers, ALostServerEndsACheckpointUntilItsManifestIsWritten) {
  CoreDriver d(2);
  d.Serve(0);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "write manifest");
  EXPECT_EQ(d.Step(event::DaemonDied{100}),
            "server 0 died; aborted 1; done 2 UNAVAILABLE; interrupt; pause");
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}), "");
  EXPECT_EQ(d.Want(3, {.kind = ServerTask::Kind::kSave}), "") << "it waits for the server";
}

TEST(CoreServers, AssignmentsAreRepeatedInTheirPlaces) {
  CoreDriver d;
  d.Serve(1);
  auto assignment = std::make_shared<Assignment>();
  assignment->variable = "w";
  d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kAssign, .assignment = assignment}), "assign 2");
  EXPECT_EQ(d.Step(event::Assigned{d.Last<action::Assign>().attempt}), "done 2 OK");
  d.Schedule();
  d.Result(3, 0);
  d.Ended(3);
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.Routing(2, 2);
  d.Installed(0, 10);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; start 1 on 0 from 0");
  EXPECT_FALSE(d.core.whole());
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK; assign 2") << "then what is behind it";
  const uint64_t first = d.Last<action::Assign>().attempt;
  EXPECT_EQ(d.Step(event::Assigned{first, CallError::Of(MachineFault())}), "");
  EXPECT_EQ(d.TickAfterFailures(1), "assign 2");
  const uint64_t second = d.Last<action::Assign>().attempt;
  EXPECT_EQ(d.Step(event::Assigned{first}), "") << "of the first try";
  EXPECT_EQ(d.Step(event::Assigned{second}), "start 3 on 0 from 0");
  EXPECT_TRUE(d.core.whole());
}

// On the servers that the last event has asked to repeat one.
std::string AssignmentFails(CoreDriver& d) {
  return d.Step(event::Assigned{Attempt(d), CallError::Of(MachineFault())});
}

TEST(CoreServers, FailuresOfServersThatAreGoneDelayNothingOfTheNext) {
  CoreDriver d;
  d.Serve(0);
  ServerTask assign = {.kind = ServerTask::Kind::kAssign};
  assign.assignment = std::make_shared<Assignment>();
  d.Want(2, assign);
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 2 OK");
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; assign 1");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(AssignmentFails(d), "") << i;
    EXPECT_EQ(d.TickAfterFailures(i), "assign 1") << i;
  }
  EXPECT_EQ(AssignmentFails(d), "");
  d.Step(event::DaemonDied{200});
  d.Join(pb::ROLE_PSSERVER, 300, 0);
  EXPECT_EQ(d.Restored(3), "use routing; serve in 3; assign 1") << "the delay is over with them";
  EXPECT_EQ(AssignmentFails(d), "");
  EXPECT_EQ(d.TickAfterFailures(1), "assign 1");
}

TEST(CoreServers, ARepeatedAssignmentMakesTheNextFailureTheFirst) {
  CoreDriver d;
  d.Serve(0);
  ServerTask assign = {.kind = ServerTask::Kind::kAssign};
  assign.assignment = std::make_shared<Assignment>();
  d.Want(2, assign);
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 2 OK");
  d.Want(3, assign);
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 3 OK");
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; assign 1");
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(AssignmentFails(d), "") << i;
    EXPECT_EQ(d.TickAfterFailures(i), "assign 1") << i;
  }
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "assign 2");
  EXPECT_EQ(AssignmentFails(d), "");
  EXPECT_EQ(d.TickAfterFailures(1), "assign 2");
}

TEST(CoreServers, WhatARepeatedAssignmentWaitsForIsNotHeldBack) {
  CoreDriver d;
  d.Serve(1);
  d.Step(event::MostKept{1});
  for (int i = 0; i < 3; ++i) d.Schedule();
  EXPECT_EQ(d.core.queue().queued(), 1u) << "function 3 has not begun";
  d.Want(9, {.kind = ServerTask::Kind::kAssign, .assignment = std::make_shared<Assignment>()});
  d.Step(event::Assigned{d.Last<action::Assign>().attempt});
  d.Step(event::DaemonDied{100});
  d.Ended(1);
  d.Ended(2);
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.Routing(2, 2);
  d.Installed(0, 10);
  d.Restored(2);
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_TRUE(d.core.updates_paused()) << "function 1 is kept, which is too much";
  d.Result(2, 0);
  d.Ended(2);
  d.Result(3, 0);
  EXPECT_EQ(d.Ended(3), "finish 3 OK; assign 4");
  const uint64_t attempt = d.Last<action::Assign>().attempt;
  EXPECT_EQ(d.Want(10, {.kind = ServerTask::Kind::kSave}), "");
  EXPECT_EQ(d.Step(event::Assigned{attempt}), "save 1");
}

// No server refuses the oldest function that checkpoints do not cover, as function 1 is here.
CallError Full() {
  CallError full = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  full.applied_full = true;
  return full;
}

// What follows the end of a checkpoint.
std::string Checkpoint(CoreDriver& d, uint64_t number) {
  d.Want(10 + number, {.kind = ServerTask::Kind::kSave});
  d.Step(event::Saved{CheckpointNumber(number)});
  return d.Step(event::ManifestWritten{CheckpointNumber(number)});
}

TEST(CoreServers, AServerWithoutRoomHoldsFunctionsBack) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Schedule();
  EXPECT_EQ(d.Step(event::RunEnded{d.runs.at(FunctionId(2)), Full()}), "")
      << "it is not sent again at once";
  EXPECT_TRUE(d.core.updates_paused());
  EXPECT_EQ(ReportMemory(d, 10), "start 2 on 0 from 0");
}

// Functions that are younger may have taken all room, and keep it until the refused one has ended.
TEST(CoreServers, ARefusedFunctionIsSentAgainWhenItIsTheOldest) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Schedule();
  EXPECT_EQ(d.Step(event::RunEnded{d.runs.at(FunctionId(2)), Full()}), "");
  EXPECT_EQ(ReportMemory(d, 100), "");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK");
  EXPECT_EQ(Checkpoint(d, 1), "committed 1; done 11 OK") << "function 1 may still be repeated";
  EXPECT_EQ(Checkpoint(d, 2), "committed 2; done 12 OK; start 2 on 0 from 0");
  EXPECT_TRUE(d.core.updates_paused()) << "others wait";
}

TEST(CoreServers, ARefusedAssignmentIsMadeWhenItIsTheOldest) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK");
  ServerTask assign = {.kind = ServerTask::Kind::kAssign};
  assign.assignment = std::make_shared<Assignment>();
  EXPECT_EQ(d.Want(2, assign), "assign 2");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Full()}), "");
  EXPECT_EQ(ReportMemory(d, 100), "");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "");
  EXPECT_EQ(Checkpoint(d, 1), "committed 1; done 11 OK") << "function 1 may still be repeated";
  EXPECT_EQ(Checkpoint(d, 2), "committed 2; done 12 OK; assign 2");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Full()}), "") << "it does not spin";
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(99)), "") << "after the second failure";
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(101)), "assign 2");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 2 OK");
}

// The checkpoint that would make room waits for the assignment, and this one for the function.
TEST(CoreServers, WhatIsRepeatedBeforeAnAssignmentAndHasNoRoomEndsTheJob) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Schedule();
  ServerTask assign = {.kind = ServerTask::Kind::kAssign};
  assign.assignment = std::make_shared<Assignment>();
  EXPECT_EQ(d.Want(9, assign), "assign 3");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 9 OK");
  d.Step(event::DaemonDied{100});
  d.Ended(1);
  d.Ended(2);
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.Routing(2, 2);
  d.Installed(0, 10);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; start 1 on 0 from 0; start 2 on 0 from 0");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK");
  EXPECT_TRUE(d.core.queue().HasAssignments());
  EXPECT_EQ(d.Step(event::RunEnded{d.runs.at(FunctionId(2)), Full()}),
            "interrupt; finish 2 FAILED_PRECONDITION; end FAILED_PRECONDITION");
  EXPECT_THAT(std::string(d.core.ended().message()), ::testing::HasSubstr("--applied_memory"));
  EXPECT_EQ(KindOf(d.core.ended()), pb::ERROR_MACHINE);
}

TEST(CoreServers, ARepeatedAssignmentThatHasNoRoomEndsTheJob) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  ServerTask assign = {.kind = ServerTask::Kind::kAssign};
  assign.assignment = std::make_shared<Assignment>();
  EXPECT_EQ(d.Want(9, assign), "assign 2");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 9 OK");
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.Routing(2, 2);
  d.Installed(0, 10);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; start 1 on 0 from 0");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK; assign 2");
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Full()}), "interrupt; end FAILED_PRECONDITION");
  EXPECT_THAT(std::string(d.core.ended().message()), ::testing::HasSubstr("--applied_memory"));
  EXPECT_EQ(KindOf(d.core.ended()), pb::ERROR_MACHINE);
}

}  // namespace
}  // namespace mu
