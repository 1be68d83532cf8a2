// What callers ask of the servers' state: order, repeats, what excludes what.
#include "tests/coordinator/core/core_driver.h"
#include "tests/coordinator/core/planned_leases.h"

namespace mu {
namespace {

using testing::Attempt;
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

TEST(CoreTasks, ServersAreConfiguredWhenAllAreThereAndSomebodyAsks) {
  CoreDriver d(2);
  EXPECT_EQ(d.Want(1, {}), "");
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 101, 1), "server 1 joins; configure in 1");
  EXPECT_EQ(d.Step(event::Configured{Attempt(d)}), "use routing; done 1 OK");
  EXPECT_EQ(d.Want(2, {}), "done 2 OK") << "they have all of it";
}

TEST(CoreTasks, WhatIsCreatedMeanwhileIsConfiguredNext) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CatalogChanged{2, 1, Generation(1), 2});
  EXPECT_EQ(d.Want(2, {}), "configure in 1");
  const uint64_t first = Attempt(d);
  d.Step(event::CatalogChanged{3, 1, Generation(1), 3});
  EXPECT_EQ(d.Step(event::Configured{first}), "use routing; configure in 1");
  EXPECT_EQ(d.Step(event::Configured{first}), "") << "its answer came";
  EXPECT_EQ(d.Step(event::Configured{first + 1}), "use routing; done 2 OK");
}

TEST(CoreTasks, WhatTwentyTriesDoNotConfigureIsAnError) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CatalogChanged{2, 1, Generation(1), 2});
  EXPECT_EQ(d.Want(2, {}), "configure in 1");
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(d.Step(event::Configured{Attempt(d), Error(MachineFault())}), "") << i;
    EXPECT_EQ(d.TickAfterFailures(i), "configure in 1") << i;
  }
  EXPECT_EQ(d.Step(event::Configured{Attempt(d), Error(MachineFault())}), "done 2 UNAVAILABLE");
}

TEST(CoreTasks, ASuccessMakesTheNextFailureTheFirst) {
  CoreDriver d;
  d.Serve(0);
  for (uint64_t version = 2; version <= 3; ++version) {
    d.Step(event::CatalogChanged{version, 1, Generation(1), version});
    EXPECT_EQ(d.Want(version, {}), "configure in 1");
    for (int i = 1; i <= 3; ++i) {
      d.Step(event::Configured{Attempt(d), Error(MachineFault())});
      EXPECT_EQ(d.TickAfterFailures(i), "configure in 1") << i;
    }
    EXPECT_EQ(d.Step(event::Configured{Attempt(d)}),
              absl::StrCat("use routing; done ", version, " OK"));
  }
}

// A coordinator does not keep step with another one, and a history can be replayed.
TEST(CoreTasks, PausesBetweenTriesDependOnTheEpochOnly) {
  const auto pause = [](uint64_t epoch) {
    CoreDriver d(1, CoordinatorEpoch(epoch));
    d.Serve(0);
    d.Want(2, Assign());
    d.Step(event::Assigned{Attempt(d), Error(MachineFault())});
    return d.core.alarm() - d.now;
  };
  EXPECT_EQ(pause(1), pause(1));
  EXPECT_NE(pause(1), pause(2));
}

TEST(CoreTasks, WhatIsGivenUpWaitsNoLongerForServers) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kSave}), "save 1");
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "");
  EXPECT_EQ(d.Step(event::TasksGivenUp{absl::CancelledError("stopped")}), "done 3 CANCELLED")
      << "the other one is under way";
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Want(4, {.kind = Kind::kSave}), "");
  EXPECT_EQ(d.Want(5, {}), "");
  EXPECT_EQ(d.Want(6, Assign()), "");
  EXPECT_EQ(d.Step(event::TasksGivenUp{absl::CancelledError("stopped")}),
            "done 4 CANCELLED; done 5 CANCELLED");
}

// The newer coordinator does not know what an older one has left on the servers.
TEST(CoreTasks, ALaterCoordinatorResetsTheServersOnce) {
  CoreDriver d(1, CoordinatorEpoch(2));
  d.Join(pb::ROLE_PSSERVER, 100, 0);
  const std::string first = absl::StrCat("reset in ", (uint64_t{1} << 32) + 2);
  const std::string second = absl::StrCat("reset in ", (uint64_t{1} << 32) + 3);
  EXPECT_EQ(d.Want(1, {}), first);
  d.Step(event::Configured{Attempt(d), Error(MachineFault())});
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), second) << "in a generation of its own";
  d.Step(event::Configured{Attempt(d)});
  d.Step(event::CatalogChanged{2, 1, Generation((uint64_t{1} << 32) + 3), 2});
  EXPECT_EQ(d.Want(2, {}), absl::StrCat("configure in ", (uint64_t{1} << 32) + 3));
}

// A worker takes 0 for any generation.
TEST(CoreTasks, NoCoordinatorBeginsInGeneration0) {
  for (const uint64_t epoch : {1, 2, 7}) {
    CoreDriver d(1, CoordinatorEpoch(epoch));
    d.Serve(1);
    EXPECT_GT(d.core.generation(), Generation((epoch - 1) << 32)) << epoch;
    EXPECT_LT(d.core.generation(), Generation(epoch << 32)) << epoch;
    EXPECT_EQ(d.core.recovery().generation(), d.core.generation()) << epoch;
    EXPECT_EQ(d.Schedule(), "scheduled 1; start 1 on 0 from 0") << epoch;
  }
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
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 2 OK");
  EXPECT_EQ(d.Want(3, Assign()), "assign 2");
  CallError full = Error(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  full.applied_full = true;
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d), full}), "");
  EXPECT_TRUE(d.core.updates_paused());
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "");
  EXPECT_EQ(d.Want(4, {.kind = Kind::kSave}), "save 1");
}

// Before the job has begun: no checkpoint would make room.
ServerTask AssignNowOrNever() {
  ServerTask task = Assign();
  task.waits_for_room = false;
  return task;
}

TEST(CoreTasks, AnAssignmentThatAServerHasNoRoomForEndsIfNothingMakesRoom) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, AssignNowOrNever()), "assign 1");
  const uint64_t assigning = Attempt(d);
  EXPECT_EQ(d.Want(3, AssignNowOrNever()), "");
  EXPECT_EQ(d.Want(4, Assign()), "");
  CallError full = Error(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  full.applied_full = true;
  EXPECT_EQ(d.Step(event::Assigned{assigning, full}),
            "done 2 FAILED_PRECONDITION; done 3 FAILED_PRECONDITION");
  EXPECT_FALSE(d.core.queue().AssignmentOpen(FunctionId(1)));
  EXPECT_EQ(d.Want(5, AssignNowOrNever()), "done 5 FAILED_PRECONDITION");
  EXPECT_EQ(ReportMemory(d, 10), "assign 2") << "the one that waits";
  EXPECT_EQ(d.Step(event::Assigned{Attempt(d)}), "done 4 OK");
  EXPECT_EQ(d.Want(6, AssignNowOrNever()), "assign 3");
}

TEST(CoreTasks, AnAssignmentEndsIfUpdatesPauseBeforeItsTurn) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kSave}), "save 1");
  EXPECT_EQ(d.Want(3, AssignNowOrNever()), "");
  EXPECT_EQ(ReportMemory(d, 95), "");
  d.Step(event::Saved{CheckpointNumber(1)});
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}),
            "committed 1; done 2 OK; done 3 FAILED_PRECONDITION");
}

TEST(CoreTasks, OnceSomethingIsScheduledAnAssignmentWaitsForRoom) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  EXPECT_EQ(ReportMemory(d, 95), "");
  EXPECT_EQ(d.Want(2, AssignNowOrNever()), "");
  EXPECT_EQ(ReportMemory(d, 10), "assign 2");
}

TEST(CoreTasks, FunctionsThatOnlyReadDoNotBeginTheJob) {
  CoreDriver d;
  d.Serve(1);
  FunctionWork reads;
  reads.fingerprint = Fingerprint(6);
  EXPECT_EQ(d.Step(event::Schedule{reads}), "scheduled 1; start 1 on 0 from 0");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK");
  EXPECT_TRUE(d.core.queue().scheduled());
  EXPECT_FALSE(d.core.queue().begun());
  EXPECT_EQ(ReportMemory(d, 95), "");
  EXPECT_EQ(d.Want(2, AssignNowOrNever()), "done 2 FAILED_PRECONDITION")
      << "nobody takes the checkpoint that would make room";
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  EXPECT_EQ(d.Want(3, {.kind = Kind::kLoad, .point = point}), "done 3 FAILED_PRECONDITION")
      << "ids of the job have been given out";
  d.Schedule();
  EXPECT_TRUE(d.core.queue().begun());
}

TEST(CoreTasks, WhatWouldBeKeptIsCountedWithWhatIs) {
  CoreDriver d;
  d.Serve(0);
  EXPECT_FALSE(d.core.updates_paused(1 << 30)) << "any amount";
  d.Step(event::MostKept{10'000});
  EXPECT_FALSE(d.core.updates_paused(8'999));
  EXPECT_TRUE(d.core.updates_paused(9'000));
  d.Want(2, Assign());
  d.Step(event::Assigned{Attempt(d)});
  const uint64_t kept = d.core.queue().kept_bytes();
  EXPECT_FALSE(d.core.updates_paused(8'999 - kept));
  EXPECT_TRUE(d.core.updates_paused(9'000 - kept));
  EXPECT_FALSE(d.core.updates_paused());
  const auto none = testing::HasCode(absl::StatusCode::kFailedPrecondition);
  MU_EXPECT_OK(d.core.RoomToAssign("w", /*waits_for_room=*/false, 8'999 - kept));
  EXPECT_THAT(d.core.RoomToAssign("w", false, 9'000 - kept), none);
  MU_EXPECT_OK(d.core.RoomToAssign("w", true, 9'000 - kept));
  d.Step(event::MostKept{kept});
  EXPECT_TRUE(d.core.updates_paused(0));
  EXPECT_THAT(d.core.RoomToAssign("w", false), none);
  d.Schedule();
  MU_EXPECT_OK(d.core.RoomToAssign("w", false)) << "the job has begun";
}

TEST(CoreTasks, ALostServerMakesAnAssignmentBegunAgain) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  const uint64_t first = Attempt(d);
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Step(event::Assigned{first}), "") << "the server that has it is gone";
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; assign 1");
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
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
}

TEST(CoreTasks, RecoveryIsOfTheGenerationThatServersWereResetIn) {
  CoreDriver d;
  d.Serve(0, /*recovery=*/false);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))}),
      "bad for 2; done 2 DATA_LOSS; reset in 3");
  const uint64_t resetting = Attempt(d);
  d.Step(event::EnableRecovery{});
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "");
  EXPECT_EQ(d.Step(event::Configured{resetting}), "use routing; save 2");
  EXPECT_EQ(d.Last<action::Save>().generation, Generation(3));
  EXPECT_EQ(d.core.recovery().generation(), Generation(3));
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

TEST(CoreTasks, WhatTwentyTriesDoNotAssignIsAnError) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, Assign());
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(d.Step(event::Assigned{Attempt(d), Error(MachineFault())}), "") << i;
    EXPECT_EQ(d.TickAfterFailures(i), "assign 1") << i;
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
  d.Routing(2, 2);
  d.Installed(0, 10);
  d.Schedule(4);
  EXPECT_EQ(d.core.queue().Find(FunctionId(1))->work.step_offset, 700u);
}

// Schedule refuses such a function; one that a checkpoint brings back was scheduled before.
TEST(CoreTasks, AResumedFunctionThatWorkersRefuseEndsWithTheirError) {
  CoreDriver d;
  d.Serve(1);
  d.Define(5);
  d.Installed(0, 10, testing::FoundWrong());
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
  d.Routing(3, 2);
  ASSERT_EQ(d.Installed(0, 10), "start 7 on 0 from 0");
  EXPECT_EQ(d.Ended(7, testing::Typed(pb::ERROR_NOT_INSTALLED)),
            "finish 7 INVALID_ARGUMENT; cancel below 8 in generation 2 on 1");
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

// It draws other numbers each time, and the steps of training stay where they are.
TEST(FunctionQueueSteps, WhatOnlyReadsIsCountedByItself) {
  FunctionQueue queue(9, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); });
  queue.WorkerReady(WorkerId(0), 1);
  std::vector<FunctionId> ids;
  for (const bool trains : {true, false, false, true, false})
    ids.push_back(queue.Schedule({.steps = 3, .trains = trains}));
  std::vector<FunctionId> completed;
  const std::vector<StartRun> starts = queue.Dispatch(&completed);
  ASSERT_EQ(starts.size(), ids.size());
  std::vector<uint64_t> steps, draws;
  for (const FunctionId id : ids) {
    steps.push_back(queue.Find(id)->work.step_offset);
    draws.push_back(queue.Find(id)->work.draw_offset);
  }
  constexpr uint64_t kFirst = kFirstReadingDraw;
  EXPECT_EQ(steps, std::vector<uint64_t>({0, 3, 3, 3, 6}));
  EXPECT_EQ(draws, std::vector<uint64_t>({0, kFirst, kFirst + 3, 0, kFirst + 6}));
  EXPECT_EQ(queue.taken_steps(), 6u);
  // It draws the same wherever it runs again.
  EXPECT_EQ(queue.RunEnded(ids[1], starts[1].run), FunctionQueue::Ended::kRequeued);
  ASSERT_EQ(queue.Dispatch(&completed).size(), 1u);
  EXPECT_EQ(queue.Find(ids[1])->work.draw_offset, kFirst);
}

}  // namespace
}  // namespace mu
