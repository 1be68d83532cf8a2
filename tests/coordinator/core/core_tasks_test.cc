// What callers ask of the servers' state: order, repeats, what excludes what.
#include "common/base/cannot_read.h"
#include "tests/coordinator/core/core_driver.h"
#include "tests/coordinator/core/planned_leases.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::MachineFault;
using testing::Typed;
using Kind = ServerTask::Kind;

ServerTask Assign() {
  auto assignment = std::make_shared<Assignment>();
  assignment->variable = "w";
  return {.kind = Kind::kAssign, .assignment = std::move(assignment)};
}

CallError Error(absl::Status status) { return CallError::Of(std::move(status)); }

// The newest attempt that was begun.
uint64_t Attempt(const CoreDriver& d) {
  uint64_t attempt = 0;
  for (const Action& action : d.last) {
    if (const auto* a = std::get_if<action::Assign>(&action)) attempt = a->attempt;
    if (const auto* a = std::get_if<action::Configure>(&action)) attempt = a->attempt;
    if (const auto* a = std::get_if<action::Load>(&action)) attempt = a->attempt;
  }
  return attempt;
}

TEST(CoreTasks, ServersAreConfiguredWhenAllAreThereAndSomebodyAsks) {
  CoreDriver d(2);
  EXPECT_EQ(d.Want(1, {}), "");
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 101, 1), "server 1 joins; configure in 0");
  EXPECT_EQ(d.Step(event::Configured{Attempt(d)}), "use routing; done 1 OK");
  EXPECT_EQ(d.Want(2, {}), "done 2 OK") << "they have all of it";
}

TEST(CoreTasks, WhatIsCreatedMeanwhileIsConfiguredNext) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CatalogChanged{2, 1, Generation(0), 2});
  EXPECT_EQ(d.Want(2, {}), "configure in 0");
  const uint64_t first = Attempt(d);
  d.Step(event::CatalogChanged{3, 1, Generation(0), 3});
  EXPECT_EQ(d.Step(event::Configured{first}), "use routing; configure in 0");
  EXPECT_EQ(d.Step(event::Configured{first}), "") << "its answer came";
  EXPECT_EQ(d.Step(event::Configured{first + 1}), "use routing; done 2 OK");
}

TEST(CoreTasks, WhatTwentyTriesDoNotConfigureIsAnError) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CatalogChanged{2, 1, Generation(0), 2});
  EXPECT_EQ(d.Want(2, {}), "configure in 0");
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(d.Step(event::Configured{Attempt(d), Error(MachineFault())}), "") << i;
    EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "configure in 0") << i;
  }
  EXPECT_EQ(d.Step(event::Configured{Attempt(d), Error(MachineFault())}), "done 2 UNAVAILABLE");
}

// The newer coordinator does not know what an older one has left on the servers.
TEST(CoreTasks, ALaterCoordinatorResetsTheServersOnce) {
  CoreDriver d(1, CoordinatorEpoch(2));
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  const std::string first = absl::StrCat("reset in ", (uint64_t{1} << 32) + 1);
  const std::string second = absl::StrCat("reset in ", (uint64_t{1} << 32) + 2);
  EXPECT_EQ(d.Want(1, {}), first);
  d.Step(event::Configured{Attempt(d), Error(MachineFault())});
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), second) << "in a generation of its own";
  d.Step(event::Configured{Attempt(d)});
  d.Step(event::CatalogChanged{2, 1, Generation((uint64_t{1} << 32) + 2), 2});
  EXPECT_EQ(d.Want(2, {}), absl::StrCat("configure in ", (uint64_t{1} << 32) + 2));
}

TEST(CoreTasks, OneIsUnderWayAtATimeAndTheOldestIsNext) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, Assign()), "assign 1");
  const uint64_t assigning = Attempt(d);
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "");
  EXPECT_EQ(d.Want(4, Assign()), "");
  EXPECT_EQ(d.Step(event::Assigned{assigning}), "done 2 OK; save 1");
  d.Step(event::Saved{CheckpointNumber(1)});
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}),
            "committed 1; done 3 OK; assign 2");
}

TEST(CoreTasks, AnAssignmentIsTriedAgainInItsPlace) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, Assign()), "assign 1");
  const uint64_t first = Attempt(d);
  EXPECT_EQ(d.Step(event::Assigned{first, Error(Typed(pb::ERROR_STALE))}), "");
  EXPECT_EQ(d.core.low_water(), FunctionId(1)) << "a late copy of the first try is a repeat";
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "assign 1");
  const uint64_t second = Attempt(d);
  EXPECT_EQ(d.Step(event::Assigned{first}), "") << "of the first try";
  EXPECT_EQ(d.Step(event::Assigned{second}), "done 2 OK");
}

TEST(CoreTasks, AnAssignmentThatIsWrongIsNotTriedAgainAndHoldsNothingBack) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Error(absl::InvalidArgumentError("NaN"))}),
            "done 2 INVALID_ARGUMENT");
  EXPECT_FALSE(d.core.queue().AssignmentOpen(FunctionId(1)));
}

TEST(CoreTasks, AnAssignmentThatWasCancelledIsMadeInANewPlace) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, Assign()), "assign 1");
  const uint64_t first = Attempt(d);
  d.Step(event::CancelEverything{});
  d.Step(event::Fenced{d.Last<action::FenceServers>().attempt});
  EXPECT_EQ(d.Step(event::Assigned{first}), "assign 2") << "servers may have refused it";
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 2 OK");
}

TEST(CoreTasks, AnAssignmentWithoutRoomWaitsAndACheckpointDoesNotWaitForIt) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  CallError full = Error(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  full.applied_full = true;
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), full}), "");
  EXPECT_TRUE(d.core.updates_paused());
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "");
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "save 1");
}

TEST(CoreTasks, ALostServerMakesAnAssignmentBegunAgain) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  const uint64_t first = Attempt(d);
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Step(event::Assigned{first}), "") << "the server that has it is gone";
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(1), "use routing; serve in 1; assign 1");
}

TEST(CoreTasks, WhatWasLoadedIsTheOnlyPointToGoBackTo) {
  CoreDriver d;
  d.Serve(1);
  auto values = std::make_shared<ResumePoint>();
  values->job.functions.next_id = FunctionId(40);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad, .loaded = CheckpointNumber(7), .point = values}),
            "load for 2 in 1");
  EXPECT_EQ(d.Last<action::Load>().point, CheckpointNumber(8)) << "a number of its own";
  EXPECT_FALSE(d.core.may_schedule());
  EXPECT_EQ(d.Step(event::Loaded{.attempt = Attempt(d), .updates = {3}}), "use routing; done 2 OK");
  EXPECT_TRUE(d.core.may_schedule());
  EXPECT_EQ(d.Routing(2, 1), "install on 0 since 1");
  EXPECT_EQ(d.Installed(0, 10, 2), "");
  EXPECT_EQ(d.Schedule(), "scheduled 40; start 40 on 0 from 0") << "no id of the run before";
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since checkpoint 8 will run again; round 2 "
            "from 8: restore 0");
}

TEST(CoreTasks, NothingIsLoadedWhileFunctionsRun) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK; load for 2 in 1");
}

// Some servers may have loaded it, others not.
TEST(CoreTasks, ALoadThatFailsLeavesNoMixtureBehind) {
  CoreDriver d(2);
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))}),
      "bad for 2; interrupt; pause; 0 steps of 0 functions since the beginning will run again; "
      "round 2 from 0: restore 0, restore 1; done 2 DATA_LOSS");
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "") << "not of that state";
}

TEST(CoreTasks, WithoutRecoveryALoadThatFailsResetsTheServers) {
  CoreDriver d;
  d.Serve(0, /*recovery=*/false);
  d.Want(2, {.kind = Kind::kLoad});
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))});
  EXPECT_EQ(d.Want(3, {}), "reset in 2");
}

TEST(CoreTasks, ALoadThatAskedNoServerCostsNothing) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(MachineFault()), .asked = false}),
      "");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "load for 2 in 2");
}

TEST(CoreTasks, OfFilesThatAreMissingNoServerHears) {
  for (const absl::Status& damage :
       {absl::NotFoundError("no file"), absl::DataLossError("short")}) {
    CoreDriver d;
    d.files_are_there = false;
    d.Serve(0);
    EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "look in 1");
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(7), damage}), "") << "of another look";
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(1), damage}),
              "bad for 2; done 2 " + absl::StatusCodeToString(damage.code()));
    EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "save 2") << "the servers hold what they did";
  }
}

// Servers may see them all the same.
TEST(CoreTasks, FilesThatTheCoordinatorCannotLookAtAreLoaded) {
  CoreDriver d;
  d.files_are_there = false;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "look in 1");
  EXPECT_EQ(d.Step(event::FilesSeen{Generation(1), absl::PermissionDeniedError("no")}),
            "load for 2 in 1");
  EXPECT_EQ(d.Step(event::FilesSeen{Generation(1), absl::NotFoundError("again")}), "");
}

// In RecoveryMode::kShard the others go on with what they have.
TEST(CoreTasks, AServerThatIsLostBeforeALoadAsksAnyCostsTheOthersNothing) {
  for (const bool asked : {false, true}) {
    CoreDriver d(2);
    d.files_are_there = asked;
    d.Step(event::EnableRecovery{RecoveryMode::kShard});
    d.Serve(0, /*recovery=*/false);
    d.Want(2, {.kind = Kind::kLoad});
    d.Step(event::DaemonDied{100});
    const std::string round = d.Join(pb::ROLE_PSSERVER, 200, 0);
    EXPECT_THAT(round, ::testing::HasSubstr(asked ? "restore 0, restore 1" : "restore 0, keep 1"));
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(1)}), "") << "that look is void";
  }
}

// Also of two datasets of which only one is another.
TEST(CoreTasks, AJobThatDoesNotFitCostsNothing) {
  CoreDriver d;
  d.Serve(1);
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  for (const uint64_t id : {3, 4}) {
    pb::DatasetProto dataset;
    dataset.set_id(id);
    dataset.set_batch_size(1);
    dataset.set_block_records(1);
    const DataLayout data = testing::LayoutOf(dataset, {10});
    d.Step(event::DatasetAdded{data, testing::PlanOf(data, 0)});
    DataLeases begun = testing::BeginLeases(data);
    (void)testing::Take(begun, WorkerId(0), 2);
    point->data.push_back({id, begun.Position(), testing::PlanOf(data, 0)});
  }
  point->data[1].position.set_fingerprint(1);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad, .point = point}), "done 2 INVALID_ARGUMENT");
  EXPECT_EQ(d.core.leases(3)->shared()->left(), 10u);
  auto fits = std::make_shared<ResumePoint>(*point);
  fits->data.pop_back();
  d.Want(3, {.kind = Kind::kLoad, .point = fits});
  d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});
  EXPECT_EQ(d.core.leases(3)->shared()->left(), 8u);
}

TEST(CoreTasks, AJobThatHasBegunContinuesNoOther) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad, .point = point}), "done 2 FAILED_PRECONDITION");
  EXPECT_TRUE(d.core.may_schedule());
}

TEST(CoreTasks, RecoveryIsOfTheGenerationThatServersWereResetIn) {
  CoreDriver d;
  d.Serve(0, /*recovery=*/false);
  d.Want(2, {.kind = Kind::kLoad});
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))});
  d.Step(event::EnableRecovery{});
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "reset in 2");
  EXPECT_EQ(d.Step(event::Configured{Attempt(d)}), "use routing; save 2");
  EXPECT_EQ(d.Last<action::Save>().generation, Generation(2));
  EXPECT_EQ(d.core.recovery().generation(), Generation(2));
}

TEST(CoreTasks, WhoOnlyWantsServersToServeDoesNotWaitForACheckpoint) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kSave});
  EXPECT_EQ(d.Want(3, {}), "done 3 OK");
}

TEST(CoreTasks, TheEndEndsACheckpoint) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kSave});
  EXPECT_EQ(d.Step(event::Fail{absl::UnavailableError("no daemon starts")}),
            "interrupt; aborted 1; done 2 UNAVAILABLE; end UNAVAILABLE");
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "");
}

TEST(CoreTasks, AServerLostDuringALoadBeginsItAgain) {
  CoreDriver d(2);
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  const uint64_t first = Attempt(d);
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Step(event::Loaded{.attempt = first, .updates = {0, 0}}), "") << "void";
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since the beginning will run again; round 2 "
            "from 0: restore 0, restore 1");
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; load for 2 in 3");
}

absl::Status ServerCannotRead() { return CannotRead(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)); }

TEST(CoreTasks, AServerThatCannotReadAGoodCheckpointIsReplaced) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  EXPECT_EQ(d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())}),
            "look in 1");
  EXPECT_THAT(d.Step(event::FilesSeen{Generation(1)}),
              ::testing::StartsWith("server 0 cannot_read; interrupt"));
  d.files_are_there = true;
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "refuse FAILED_PRECONDITION");
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.now += absl::Seconds(20);  // the lease of the old process has ended
  d.Beat(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; load for 2 in 3");
}

TEST(CoreTasks, AServerThatCannotReadABadCheckpointStays) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())});
  EXPECT_THAT(d.Step(event::FilesSeen{Generation(1), absl::NotFoundError("gone")}),
              ::testing::AllOf(::testing::StartsWith("bad for 2; interrupt"),
                               ::testing::EndsWith("done 2 NOT_FOUND")));
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "") << "the same process";
}

TEST(CoreTasks, WhileNobodyCanReadTheLoadIsTriedAgain) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())});
  d.Step(event::FilesSeen{Generation(1), CannotRead(absl::NotFoundError("no such mount"))});
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "look in 3");
}

TEST(CoreTasks, AServerLeavesWhenALoadHasEnded) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  const uint64_t loading = Attempt(d);
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 100, 0, 1), "");
  EXPECT_EQ(d.Step(event::Loaded{.attempt = loading, .updates = {0}}),
            "use routing; done 2 OK; pause; round 2 from 0: keep 0");
}

TEST(CoreTasks, WhatTwentyTriesDoNotAssignIsAnError) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Error(MachineFault())}), "") << i;
    EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "assign 1") << i;
  }
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Error(MachineFault())}), "done 2 UNAVAILABLE");
}

TEST(CoreTasks, AContinuedJobCountsItsStepsOn) {
  CoreDriver d;
  d.Serve(1);
  auto values = std::make_shared<ResumePoint>();
  values->job.taken_steps = 700;
  d.Want(2, {.kind = Kind::kLoad, .point = values});
  d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});
  d.Routing(2, 1);
  d.Installed(0, 10, 2);
  d.Schedule(4);
  EXPECT_EQ(d.core.queue().Find(FunctionId(1))->work.step_offset, 700u);
}

// Values that come after the first step would overwrite what it has trained.
TEST(CoreTasks, ALoadThatBeginsTheJobComesBeforeItsFunctions) {
  CoreDriver d;
  d.Serve(1);
  auto values = std::make_shared<ResumePoint>();
  values->begins = true;
  d.Want(2, {.kind = Kind::kLoad, .point = values});
  d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});
  d.Routing(2, 1);
  d.Installed(0, 10, 2);
  d.Schedule();
  EXPECT_EQ(d.Want(3, {.kind = Kind::kLoad, .point = values}), "done 3 FAILED_PRECONDITION");
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_EQ(d.Want(4, {.kind = Kind::kLoad, .point = values}), "done 4 FAILED_PRECONDITION");
  EXPECT_EQ(d.Want(5, {.kind = Kind::kLoad}), "load for 5 in 2") << "any other values";
}

// Schedule refuses such a function; one that a checkpoint brings back was scheduled before.
TEST(CoreTasks, AResumedFunctionThatWorkersRefuseEndsWithTheirError) {
  CoreDriver d;
  d.Serve(1);
  d.Step(event::FunctionRefused{WorkerId(0), Fingerprint(5), absl::InvalidArgumentError("wrong")});
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  ASSERT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}),
            "cancelled INVALID_ARGUMENT");
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  point->job.functions.next_id = FunctionId(8);
  FunctionQueue::Function& function = point->job.functions.unfinished[FunctionId(7)];
  function.work = {.fingerprint = Fingerprint(5), .trains = true, .updates = true};
  function.steps = 1;
  d.Want(2, {.kind = Kind::kLoad, .point = point});
  d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});
  d.Routing(2, 1);
  ASSERT_EQ(d.Installed(0, 10, 2), "start 7 on 0 from 0");
  EXPECT_EQ(d.Ended(7, testing::Typed(pb::ERROR_NOT_INSTALLED)),
            "finish 7 INVALID_ARGUMENT; cancel below 8 in generation 1 on 1");
  EXPECT_EQ(d.core.queue().unfinished(), 0u);
}

TEST(CoreTasks, AllEndWithTheJob) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  d.Want(3, {.kind = Kind::kSave});
  EXPECT_EQ(d.Step(event::Fail{absl::UnavailableError("no daemon starts")}),
            "interrupt; done 2 UNAVAILABLE; done 3 UNAVAILABLE; end UNAVAILABLE");
  EXPECT_EQ(d.Want(4, {}), "done 4 UNAVAILABLE");
  d.Step(event::Close{});
  EXPECT_EQ(d.Want(5, {}), "done 5 CANCELLED");
}

TEST(CoreTasks, StepsAreCountedWhenTheyAreBoundNotWhenTheyWait) {
  CoreDriver d;
  d.Serve(1);
  for (int i = 0; i < 3; ++i) d.Schedule(4);  // two are in flight
  EXPECT_EQ(d.core.queue().taken_steps(), 8u);
  EXPECT_EQ(d.core.queue().Find(FunctionId(2))->work.step_offset, 4u);
}

}  // namespace
}  // namespace mu
