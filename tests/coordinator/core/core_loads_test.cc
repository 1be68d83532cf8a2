// Checkpoints that servers are asked to load: looks at files, losses meanwhile, whose fault a
// failure is.
#include "common/base/cannot_read.h"
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::Attempt;
using testing::CoreDriver;
using testing::MachineFault;
using testing::Typed;
using Kind = ServerTask::Kind;

CallError Error(absl::Status status) { return CallError::Of(std::move(status)); }

TEST(CoreLoads, WhatWasLoadedIsTheOnlyPointToGoBackTo) {
  CoreDriver d;
  d.Serve(1);
  auto values = std::make_shared<ResumePoint>();
  values->job.functions.next_id = FunctionId(40);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad, .loaded = CheckpointNumber(7), .point = values}),
            "load for 2 in 2");
  EXPECT_EQ(d.Last<action::Load>().point, CheckpointNumber(8)) << "a number of its own";
  EXPECT_TRUE(d.core.MaySchedule({}).wait);
  EXPECT_EQ(d.Step(event::Loaded{.attempt = Attempt(d), .updates = {3}}), "use routing; done 2 OK");
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
  EXPECT_EQ(d.Routing(2, 2), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10), "");
  EXPECT_EQ(d.Schedule(), "scheduled 40; start 40 on 0 from 0") << "no id of the run before";
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since checkpoint 8 will run again; round 3 "
            "from 8: restore 0");
}

TEST(CoreLoads, NothingIsLoadedWhileFunctionsRun) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "");
  d.Result(1, 0);
  EXPECT_EQ(d.Ended(1), "finish 1 OK; load for 2 in 2");
}

// Some servers may have loaded it, others not.
TEST(CoreLoads, ALoadThatFailsLeavesNoMixtureBehind) {
  CoreDriver d(2);
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))}),
      "bad for 2; interrupt; pause; 0 steps of 0 functions since the beginning will run again; "
      "round 3 from 0: restore 0, restore 1; done 2 DATA_LOSS");
  EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "") << "not of that state";
}

TEST(CoreLoads, WithoutRecoveryALoadThatFailsResetsTheServers) {
  CoreDriver d;
  d.Serve(1, /*recovery=*/false);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))}),
      "bad for 2; done 2 DATA_LOSS; reset in 3")
      << "although nobody asks for it";
  const uint64_t resetting = Attempt(d);
  EXPECT_EQ(d.Schedule(), "scheduled 1") << "the servers would refuse a run of the old state";
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "");
  EXPECT_EQ(d.Want(3, {}), "");
  EXPECT_EQ(d.Step(event::Configured{resetting}), "use routing; done 3 OK");
  EXPECT_EQ(d.Routing(2, 3), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10), "start 1 on 0 from 0");
}

// Whoever waits for functions hears of it.
TEST(CoreLoads, ServersThatCannotBeResetEndTheJob) {
  CoreDriver d;
  d.Serve(1, /*recovery=*/false);
  d.Want(2, {.kind = Kind::kLoad});
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(absl::DataLossError("torn"))});
  uint64_t resetting = Attempt(d);
  d.Schedule();
  for (int i = 1; i < 20; ++i) {
    EXPECT_EQ(d.Step(event::Configured{resetting, Error(MachineFault())}), "") << i;
    EXPECT_EQ(d.TickAfterFailures(i), absl::StrCat("reset in ", 3 + i));
    resetting = Attempt(d);
  }
  EXPECT_EQ(d.Step(event::Configured{resetting, Error(MachineFault())}),
            "interrupt; finish 1 UNAVAILABLE; end UNAVAILABLE");
}

TEST(CoreLoads, ALoadThatAskedNoServerCostsNothing) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  EXPECT_EQ(
      d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(MachineFault()), .asked = false}),
      "");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "load for 2 in 3");
}

TEST(CoreLoads, OfFilesThatAreMissingNoServerHears) {
  for (const absl::Status& damage :
       {absl::NotFoundError("no file"), absl::DataLossError("short")}) {
    CoreDriver d;
    d.files_are_there = false;
    d.Serve(0);
    EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "look in 2");
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(8), damage}), "") << "of another look";
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(2), damage}),
              "bad for 2; done 2 " + absl::StatusCodeToString(damage.code()));
    EXPECT_EQ(d.Want(3, {.kind = Kind::kSave}), "save 2") << "the servers hold what they did";
  }
}

// Servers may see them all the same.
TEST(CoreLoads, FilesThatTheCoordinatorCannotLookAtAreLoaded) {
  CoreDriver d;
  d.files_are_there = false;
  d.Serve(0);
  EXPECT_EQ(d.Want(2, {.kind = Kind::kLoad}), "look in 2");
  EXPECT_EQ(d.Step(event::FilesSeen{Generation(2), absl::PermissionDeniedError("no")}),
            "load for 2 in 2");
  EXPECT_EQ(d.Step(event::FilesSeen{Generation(2), absl::NotFoundError("again")}), "");
}

// In RecoveryMode::kShard the others go on with what they have.
TEST(CoreLoads, AServerThatIsLostBeforeALoadAsksAnyCostsTheOthersNothing) {
  for (const bool asked : {false, true}) {
    CoreDriver d(2);
    d.files_are_there = asked;
    d.Step(event::EnableRecovery{RecoveryMode::kShard});
    d.Serve(0, /*recovery=*/false);
    d.Want(2, {.kind = Kind::kLoad});
    d.Step(event::DaemonDied{100});
    const std::string round = d.Join(pb::ROLE_PSSERVER, 200, 0);
    EXPECT_THAT(round, ::testing::HasSubstr(asked ? "restore 0, restore 1" : "restore 0, keep 1"));
    EXPECT_EQ(d.Step(event::FilesSeen{Generation(2)}), "") << "that look is void";
  }
}

TEST(CoreLoads, AServerLostDuringALoadBeginsItAgain) {
  CoreDriver d(2);
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  const uint64_t first = Attempt(d);
  d.Step(event::DaemonDied{100});
  EXPECT_EQ(d.Step(event::Loaded{.attempt = first, .updates = {0, 0}}), "") << "void";
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 200, 0),
            "server 0 joins; 0 steps of 0 functions since the beginning will run again; round 3 "
            "from 0: restore 0, restore 1");
  EXPECT_EQ(d.Restored(3), "use routing; serve in 3; load for 2 in 4");
}

absl::Status ServerCannotRead() { return CannotRead(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)); }

TEST(CoreLoads, AServerThatCannotReadAGoodCheckpointIsReplaced) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  EXPECT_EQ(d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())}),
            "look in 2");
  EXPECT_THAT(d.Step(event::FilesSeen{Generation(2)}),
              ::testing::StartsWith("server 0 cannot_read; interrupt"));
  d.files_are_there = true;
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "refuse FAILED_PRECONDITION");
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.now += absl::Seconds(20);  // the lease of the old process has ended
  d.Beat(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Restored(3), "use routing; serve in 3; load for 2 in 4");
}

TEST(CoreLoads, AServerThatCannotReadABadCheckpointStays) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())});
  EXPECT_EQ(d.Step(event::FilesSeen{Generation(8)}), "") << "of another look";
  EXPECT_THAT(d.Step(event::FilesSeen{Generation(2), absl::NotFoundError("gone")}),
              ::testing::AllOf(::testing::StartsWith("bad for 2; interrupt"),
                               ::testing::EndsWith("done 2 NOT_FOUND")));
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 100, 0), "") << "the same process";
}

// The same in a round of restores.
TEST(CoreLoads, WhoseFaultItIsThatAServerCannotBeRestoredIsSeenInTheFiles) {
  for (const bool there : {false, true}) {
    CoreDriver d;
    d.Serve(0);
    d.Want(2, {.kind = Kind::kLoad, .loaded = CheckpointNumber(7)});
    d.Step(event::Loaded{.attempt = Attempt(d), .updates = {3}});
    d.Step(event::DaemonDied{100});
    EXPECT_THAT(d.Join(pb::ROLE_PSSERVER, 200, 0), ::testing::HasSubstr("round 3 from 8"));
    d.files_are_there = false;
    EXPECT_EQ(d.Step(event::Restored{
                  .generation = Generation(3), .error = Error(ServerCannotRead()), .updates = {0}}),
              "look in 3");
    EXPECT_EQ(d.Last<action::LookAtFiles>().point, CheckpointNumber(8));
    const absl::Status seen = there ? absl::OkStatus() : absl::NotFoundError("gone");
    EXPECT_THAT(d.Step(event::FilesSeen{Generation(3), seen}),
                ::testing::StartsWith(there ? "server 0 cannot_read" : "bad 8; "));
  }
}

// They may have found another checkpoint under its name. No server and no checkpoint is at fault.
TEST(CoreLoads, WhatWasRenamedWhileServersLoadedItIsLoadedAgain) {
  for (const absl::Status& found :
       {absl::OkStatus(), ServerCannotRead(), absl::DataLossError("torn")}) {
    SCOPED_TRACE(found.ToString());
    CoreDriver d;
    d.Serve(0);
    d.Want(2, {.kind = Kind::kLoad});
    EXPECT_EQ(d.Step(event::Loaded{
                  .attempt = Attempt(d), .error = Error(found), .updates = {0}, .renamed = "best"}),
              "interrupt; pause; 0 steps of 0 functions since the beginning will run again; "
              "round 3 from 0: restore 0");
    EXPECT_EQ(d.Restored(3), "use routing; serve in 3");
    EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "load for 2 in 4");
    d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});

    d.Step(event::DaemonDied{100});
    EXPECT_THAT(d.Join(pb::ROLE_PSSERVER, 200, 0), ::testing::HasSubstr("round 5 from 2"));
    EXPECT_EQ(
        d.Step(event::Restored{
            .generation = Generation(5), .error = Error(found), .updates = {0}, .renamed = "best"}),
        "");
    EXPECT_EQ(d.TickAfter(d.core.alarm() - d.now), "round 6 from 2: restore 0");
  }
}

// What a folder is called says nothing of the coordinator that a server has seen.
TEST(CoreLoads, AServerOfANewerCoordinatorEndsThisOneAlsoIfTheFolderWasRenamed) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_STALE);
  detail.set_epoch(2);
  const CallError newer = Error(WithDetail(absl::AbortedError("newer"), detail));
  for (const char* const renamed : {"", "best"}) {
    SCOPED_TRACE(renamed);
    CoreDriver loads;
    loads.Serve(0);
    EXPECT_EQ(loads.Want(2, {.kind = Kind::kLoad}), "load for 2 in 2");
    EXPECT_EQ(loads.Step(event::Loaded{
                  .attempt = Attempt(loads), .error = newer, .updates = {0}, .renamed = renamed}),
              "interrupt; done 2 ABORTED; end ABORTED");
    EXPECT_TRUE(loads.core.superseded());

    CoreDriver restores;
    restores.Serve(0);
    restores.Step(event::DaemonDied{100});
    EXPECT_THAT(restores.Join(pb::ROLE_PSSERVER, 200, 0), ::testing::HasSubstr("round 2 from 0"));
    EXPECT_EQ(restores.Step(event::Restored{
                  .generation = Generation(2), .error = newer, .updates = {0}, .renamed = renamed}),
              "interrupt; end ABORTED");
    EXPECT_TRUE(restores.core.superseded());
  }
}

TEST(CoreLoads, WhileNobodyCanReadTheLoadIsTriedAgain) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  d.files_are_there = false;
  d.Step(event::Loaded{.attempt = Attempt(d), .error = Error(ServerCannotRead())});
  d.Step(event::FilesSeen{Generation(2), CannotRead(absl::NotFoundError("no such mount"))});
  EXPECT_EQ(d.Restored(3), "use routing; serve in 3");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(100)), "look in 4");
}

TEST(CoreLoads, AServerLeavesWhenALoadHasEnded) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = Kind::kLoad});
  const uint64_t loading = Attempt(d);
  EXPECT_EQ(d.Leave(pb::ROLE_PSSERVER, 100, 0, 1), "");
  EXPECT_EQ(d.Step(event::Loaded{.attempt = loading, .updates = {0}}),
            "use routing; done 2 OK; pause; round 3 from 0: keep 0");
}

// Values that come after the first step would overwrite what it has trained.
TEST(CoreLoads, ALoadThatBeginsTheJobComesBeforeItsFunctions) {
  CoreDriver d;
  d.Serve(1);
  auto values = std::make_shared<ResumePoint>();
  values->begins = true;
  d.Want(2, {.kind = Kind::kLoad, .point = values});
  d.Step(event::Loaded{.attempt = Attempt(d), .updates = {0}});
  d.Routing(2, 2);
  d.Installed(0, 10);
  d.Schedule();
  EXPECT_EQ(d.Want(3, {.kind = Kind::kLoad, .point = values}), "done 3 FAILED_PRECONDITION");
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_EQ(d.Want(4, {.kind = Kind::kLoad, .point = values}), "done 4 FAILED_PRECONDITION");
  EXPECT_EQ(d.Want(5, {.kind = Kind::kLoad}), "load for 5 in 3") << "any other values";
}

}  // namespace
}  // namespace mu
