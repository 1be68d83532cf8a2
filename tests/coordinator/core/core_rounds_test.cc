// Synchronous rounds as the core decides them: what starts when, which set is committed, and what
// excludes what.
#include <gmock/gmock.h>

#include <utility>

#include "tests/coordinator/core/core_rounds_fixture.h"
#include "tests/coordinator/core/planned_leases.h"

namespace mu {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CoreRounds : public testing::CoreRoundsTest {};

TEST_F(CoreRounds, AStepIsFinishedWhenItsRoundIsCommitted) {
  Serve(2, {.replicas = 2}, /*functions=*/4);
  EXPECT_TRUE(Runs(1) && Runs(2));
  EXPECT_FALSE(Runs(3)) << "it would read values of this round";
  EXPECT_EQ(Result(2, 0), "keep 2");
  d_.Ended(2);
  EXPECT_EQ(Result(1, 0), "keep 1; commit 1: 1 (1), 2 (1)");
  EXPECT_FALSE(Runs(3)) << "not all servers have the round";
  EXPECT_EQ(d_.Ended(1), "");
  EXPECT_EQ(Committed(),
            "deliver 1; finish 1 OK; deliver 2; finish 2 OK; start 3 on 0 from 0; start 4 on 1 "
            "from 0");
  EXPECT_EQ(d_.runs.at(FunctionId(3)).round, 2u);
  EXPECT_EQ(d_.core.rounds().committed, 1u);
  EXPECT_EQ(d_.core.rounds().contributions, 2u);
}

// Whoever joins has said so once, and another thread schedules an evaluation meanwhile.
TEST_F(CoreRounds, AFunctionThatOnlyReadsPromisesNoContribution) {
  Serve(2, {.replicas = 2}, /*functions=*/1);
  EXPECT_EQ(d_.Step(event::NothingMore{}), "");
  FunctionWork read;
  read.name = "read";
  read.fingerprint = Fingerprint(6);
  EXPECT_EQ(d_.Step(event::Schedule{std::move(read)}), "scheduled 2; start 2 on 1 from 0");
  EXPECT_EQ(Result(1, 0), "keep 1; commit 1: 1 (1)");
}

// Servers average by these weights. What reads no records has 1, whatever its result says.
TEST_F(CoreRounds, AContributionWeighsAsMuchAsItsBatchHasRecords) {
  Serve(3, {.replicas = 3});
  pb::DatasetProto dataset;
  dataset.set_id(3);
  dataset.set_name("d");
  dataset.set_batch_size(5);
  dataset.set_block_records(13);
  dataset.set_epochs(1);
  const DataLayout data = testing::LayoutOf(std::move(dataset), {13});
  d_.Step(event::DatasetAdded{data, testing::PlanOf(data, 0)});
  for (int f = 0; f < 3; ++f) {
    FunctionWork work;
    work.fingerprint = Fingerprint(5);
    work.steps = 1;
    work.dataset = 3;
    work.trains = work.updates = true;
    d_.Step(event::Schedule{std::move(work)});
  }
  EXPECT_EQ(Result(1, 0, 5), "keep 1");
  EXPECT_EQ(Result(3, 0, 3), "keep 3");
  EXPECT_EQ(Result(2, 0, 5), "keep 2; commit 1: 1 (5), 2 (5), 3 (3)");
}

TEST_F(CoreRounds, FewerWorkersThanStepsOfARoundAreWarnedOfOnce) {
  Serve(1, {.replicas = 2}, /*functions=*/4);
  EXPECT_THAT(d_.core.warnings(), IsEmpty());
  for (const uint64_t first : {1u, 3u}) {
    Result(first, 0);
    d_.Ended(first);
    EXPECT_THAT(Result(first + 1, 0), HasSubstr("commit"));
    EXPECT_THAT(d_.core.warnings(),
                ElementsAre("a synchronous round takes 2 steps (replicas), and there is 1 worker, "
                            "which computes all of a round"));
    d_.Ended(first + 1);
    Committed();
  }
  EXPECT_EQ(d_.core.rounds().committed, 2u);
}

TEST_F(CoreRounds, AsManyWorkersAsStepsOfARoundAreEnough) {
  Serve(2, {.replicas = 2}, /*functions=*/2);
  Result(1, 0);
  EXPECT_THAT(Result(2, 0), HasSubstr("commit"));
  EXPECT_THAT(d_.core.warnings(), IsEmpty());
}

TEST_F(CoreRounds, ACommitmentIsRepeatedUntilAllServersHaveIt) {
  Serve(1, {.replicas = 1}, /*functions=*/2);
  EXPECT_THAT(Result(1, 0), HasSubstr("commit 1: 1 (1)"));
  d_.Ended(1);
  EXPECT_EQ(Committed(testing::Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)), "");
  EXPECT_THAT(d_.Want(5, {.kind = ServerTask::Kind::kSave}), Not(HasSubstr("save")))
      << "some servers may have the round, others not";
  EXPECT_EQ(TickAfterFailures(1), "commit 1: 1 (1)");
  EXPECT_THAT(Committed(), AllOf(HasSubstr("finish 1 OK"), HasSubstr("save 1")));
}

TEST_F(CoreRounds, ACommitmentIsRepeatedMoreAndMoreSlowly) {
  Serve(1, {.replicas = 1}, /*functions=*/2);
  for (uint64_t function = 1; function <= 2; ++function) {
    EXPECT_THAT(Result(function, 0), HasSubstr(absl::StrCat("commit ", function, ": ")));
    d_.Ended(function);
    for (int i = 1; i <= 6; ++i) {
      EXPECT_EQ(Committed(testing::Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)), "") << i;
      EXPECT_THAT(TickAfterFailures(i), HasSubstr("commit ")) << i;
    }
    EXPECT_THAT(Committed(), HasSubstr(absl::StrCat("finish ", function, " OK")));
  }
}

TEST_F(CoreRounds, NoRoundIsDecidedWhileACheckpointIsTaken) {
  Serve(1, {.replicas = 1}, /*functions=*/1);
  EXPECT_EQ(d_.Want(5, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(Result(1, 0), "keep 1");
  d_.Step(event::Saved{CheckpointNumber(1), absl::OkStatus()});
  EXPECT_THAT(d_.Step(event::ManifestWritten{CheckpointNumber(1), absl::OkStatus()}),
              HasSubstr("commit 1: 1 (1)"));
}

TEST_F(CoreRounds, ASmallRoundWaitsUntilNothingMoreComes) {
  Serve(2, {.replicas = 3}, /*functions=*/2);
  Result(1, 0);
  EXPECT_EQ(Result(2, 0), "keep 2");
  EXPECT_EQ(Note(d_.Step(event::NothingMore{})), "commit 1: 1 (1), 2 (1)");
  Committed();
  EXPECT_EQ(d_.core.rounds().small, 1u);
  d_.Schedule();
  EXPECT_EQ(Result(3, 0), "keep 3") << "something more has come";
}

// None of a round's steps is applied before all are complete: with the bound the third one would
// wait for the first, which waits for the round.
TEST_F(CoreRounds, ABoundOnStalenessDoesNotHoldUpARound) {
  d_.Step(event::BoundStaleness{1});
  Serve(2, {.replicas = 4}, /*functions=*/8);
  for (const uint64_t first : {1, 5}) {
    for (uint64_t f = first; f < first + 4; ++f) ASSERT_TRUE(Runs(f)) << "function " << f;
    EXPECT_FALSE(d_.core.queue().waits_for_steps());
    for (uint64_t f = first; f < first + 3; ++f) EXPECT_EQ(Result(f, 0), absl::StrCat("keep ", f));
    EXPECT_THAT(Result(first + 3, 0), HasSubstr("commit"));
    for (uint64_t f = first; f < first + 4; ++f) d_.Ended(f);
    EXPECT_THAT(Committed(), HasSubstr(absl::StrCat("finish ", first + 3, " OK")));
  }
  EXPECT_EQ(d_.core.rounds().committed, 2u);
  EXPECT_EQ(d_.core.queue().waited_for_steps(), 0u);
  // Without rounds it holds again.
  d_.Step(event::SetRounds{});
  EXPECT_FALSE(d_.core.queue().rounds().on());
  for (int i = 0; i < 3; ++i) d_.Schedule();
  EXPECT_TRUE(Runs(9) && Runs(10));
  EXPECT_FALSE(Runs(11)) << "step 10 must not miss step 8";
}

TEST_F(CoreRounds, WhatIsTooLateRunsAgainElsewhere) {
  Serve(2, {.replicas = 1, .backups = 1}, /*functions=*/3);
  EXPECT_TRUE(Runs(1) && Runs(2));
  EXPECT_THAT(Result(2, 0), HasSubstr("commit 1: 2 (1)"));
  d_.Ended(2);
  const StartRun late = d_.runs.at(FunctionId(1));
  EXPECT_THAT(Committed(), HasSubstr("finish 2 OK; start 1 on 1 from 0"));
  EXPECT_EQ(d_.core.rounds().late, 1u);
  event::Results results = {.start = late};
  results.steps.push_back({.step = 0, .samples = 4});
  EXPECT_EQ(d_.Step(results), "") << "it has read values of the first round";
  EXPECT_THAT(Result(1, 0), HasSubstr("commit 2: 1 (1)"));
}

TEST_F(CoreRounds, WhatIsTooLateAgainAndAgainIsWaitedFor) {
  Serve(4, {.replicas = 1, .backups = 1}, /*functions=*/5);
  for (const uint64_t quick : {2, 3}) {
    EXPECT_THAT(Result(quick, 0), HasSubstr("commit")) << "function 1 is not waited for yet";
    d_.Ended(quick);
    EXPECT_THAT(Committed(), HasSubstr("start 1 on")) << "it is the first to run again";
  }
  EXPECT_EQ(d_.core.rounds().late, 2u);
  EXPECT_TRUE(Runs(1) && Runs(4));
  EXPECT_EQ(Result(4, 0), "keep 4") << "function 1 was too late for two rounds";
  EXPECT_EQ(Result(1, 0), "keep 1; commit 3: 1 (1)") << "and is in the third";
  EXPECT_THAT(Committed(), HasSubstr("finish 1 OK; start 4 on"));
  EXPECT_EQ(d_.core.rounds().late, 3u);
}

// Servers that have the round refuse the step before the others have it.
TEST_F(CoreRounds, WhatServersRefuseAsTooLateIsWaitedForAsWell) {
  Serve(4, {.replicas = 1, .backups = 1}, /*functions=*/5);
  for (const uint64_t quick : {2, 3}) {
    EXPECT_THAT(Result(quick, 0), HasSubstr("commit"));
    d_.Ended(quick);
    EXPECT_EQ(d_.Ended(1, testing::Typed(pb::ERROR_STALE, pb::ROLE_PSSERVER)), "");
    EXPECT_THAT(Committed(), HasSubstr("start 1 on"));
    EXPECT_NE(d_.runs.at(FunctionId(1)).worker, WorkerId(0)) << "it was too late there";
  }
  EXPECT_EQ(d_.core.rounds().late, 2u);
  EXPECT_EQ(Result(4, 0), "keep 4");
  EXPECT_EQ(Result(1, 0), "keep 1; commit 3: 1 (1)");
}

TEST_F(CoreRounds, WhatWasTooLateGoesBeforeOlderSteps) {
  Serve(4, {.replicas = 1, .backups = 1});
  d_.Schedule(/*steps=*/4);
  d_.Schedule();
  for (uint32_t step = 0; step < 2; ++step) {
    EXPECT_THAT(Result(1, step), HasSubstr("commit"));
    d_.Ended(1);
    Committed();
  }
  EXPECT_EQ(Result(1, 2), "keep 1");
  EXPECT_EQ(Result(2, 0), "keep 2; commit 3: 2 (1)");
  EXPECT_THAT(Committed(), HasSubstr("finish 2 OK; start 1 on"));
  EXPECT_THAT(Result(1, 2), HasSubstr("commit 4: 1 (1)")) << "it was too late for one round";
}

// Or the steps of older functions, each of which is soon too late again, would pass it over.
TEST_F(CoreRounds, WhatWasTooLateMostOftenIsFirst) {
  Serve(10, {.replicas = 1, .backups = 3});
  d_.Schedule(/*steps=*/3);
  for (int i = 0; i < 3; ++i) d_.Schedule();
  for (uint32_t step = 0; step < 2; ++step) {
    EXPECT_THAT(Result(1, step), HasSubstr("commit"));
    d_.Ended(1);
    Committed();
  }
  // The functions 2, 3 and 4 are due, and one after the other is in a round.
  for (const uint64_t first : {2, 3}) {
    EXPECT_EQ(Result(1, 2), "keep 1");
    for (uint64_t f = first; f < 4; ++f) EXPECT_EQ(Result(f, 0), absl::StrCat("keep ", f));
    EXPECT_EQ(Result(4, 0), absl::StrCat("keep 4; commit ", first + 1, ": ", first, " (1)"));
    Committed();
  }
  EXPECT_EQ(Result(1, 2), "keep 1") << "the third step of function 1 is due by now";
  EXPECT_EQ(Result(4, 0), "keep 4; commit 5: 4 (1)");
}

TEST_F(CoreRounds, WhetherAStepWasTooLateIsForgottenWithItsRound) {
  Serve(6, {.replicas = 1, .backups = 1});
  d_.Schedule(/*steps=*/2);
  for (int i = 0; i < 4; ++i) d_.Schedule();
  for (const uint64_t quick : {2, 3}) {
    Result(quick, 0);
    d_.Ended(quick);
    Committed();
  }
  EXPECT_THAT(Result(1, 0), HasSubstr("commit 3: 1 (1)"));
  d_.Ended(1);
  EXPECT_THAT(Committed(), HasSubstr("start 1 on"));
  EXPECT_THAT(Result(4, 0), HasSubstr("commit 4: 4 (1)")) << "nobody waits for its next step";
}

// What waits for a worker is not waited for: who knows when it gets one.
TEST_F(CoreRounds, WhatWasTooLateIsNotWaitedForWhileItDoesNotRun) {
  Serve(4, {.replicas = 1, .backups = 1}, /*functions=*/4);
  for (const uint64_t quick : {2, 3}) {
    Result(quick, 0);
    d_.Ended(quick);
    Committed();
  }
  Result(4, 0);
  d_.Ended(4);
  d_.Step(event::DaemonDied{13, "killed"});
  d_.Join(pb::ROLE_WORKER, 23, 3);
  d_.Installed(3, 23);
  EXPECT_THAT(d_.Step(event::DaemonDied{12, "killed"}),
              AllOf(HasSubstr("start 1 on 3"), Not(HasSubstr("commit"))));
  EXPECT_THAT(d_.Step(event::DaemonDied{23, "killed"}), HasSubstr("commit 3: 4 (1)"));
}

TEST_F(CoreRounds, ALostWorkersStepRunsElsewhereInTheSameRound) {
  Serve(2, {.replicas = 2}, /*functions=*/2);
  Result(1, 0);
  EXPECT_THAT(d_.Step(event::DaemonDied{11, "killed"}), HasSubstr("start 2 on 0 from 0"));
  EXPECT_EQ(d_.runs.at(FunctionId(2)).round, 1u);
  d_.Step(event::DaemonDied{10, "killed"});
  d_.Join(pb::ROLE_WORKER, 20, 0);
  EXPECT_THAT(d_.Installed(0, 20), HasSubstr("start 2 on 0 from 0"));
  EXPECT_THAT(Result(2, 0), HasSubstr("commit 1: 1 (1), 2 (1)"))
      << "what was complete stays complete";
}

TEST_F(CoreRounds, ADecidedRoundIsAppliedBeforeAFence) {
  Serve(1, {.replicas = 1}, /*functions=*/3);
  Result(1, 0);
  d_.Ended(1);
  EXPECT_EQ(d_.Step(event::CancelEverything{}),
            "finish 2 CANCELLED; finish 3 CANCELLED; cancel below 4 in generation 1 on 1");
  EXPECT_EQ(d_.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10), {}}), "")
      << "no fence before the round is applied everywhere";
  EXPECT_EQ(Committed(), "deliver 1; finish 1 OK; fence below 4 in generation 1");
}

TEST_F(CoreRounds, AnUndecidedRoundIsCancelledWhole) {
  Serve(2, {.replicas = 2}, /*functions=*/2);
  Result(1, 0);
  EXPECT_EQ(d_.Step(event::CancelEverything{}),
            "finish 1 CANCELLED; finish 2 CANCELLED; cancel below 3 in generation 1 on 2");
}

TEST_F(CoreRounds, ALeaveWaitsForADecidedRound) {
  Serve(1, {.replicas = 1}, /*functions=*/2);
  Result(1, 0);
  d_.Ended(1);
  EXPECT_EQ(d_.Leave(pb::ROLE_PSSERVER, 100, 0, 9), "");
  EXPECT_THAT(Committed(),
              AllOf(HasSubstr("finish 1 OK"), HasSubstr("pause"), Not(HasSubstr("start"))));
}

TEST_F(CoreRounds, ALostServerEndsADecidedRound) {
  Serve(1, {.replicas = 1}, /*functions=*/2);
  Result(1, 0);
  d_.Ended(1);
  EXPECT_THAT(d_.Step(event::DaemonDied{100, "killed"}), HasSubstr("pause"));
  EXPECT_EQ(Committed(), "") << "nobody waits for it";
  d_.Join(pb::ROLE_PSSERVER, 200, 0);
  d_.Restored(2);
  EXPECT_THAT(d_.Routing(2, 2), Not(HasSubstr("commit")));
  EXPECT_THAT(d_.Installed(0, 10), HasSubstr("start 1 on 0 from 0"));
  EXPECT_EQ(d_.runs.at(FunctionId(1)).round, 1u);
}

TEST_F(CoreRounds, ARollBackGoesBackToTheRoundOfItsPoint) {
  Serve(1, {.replicas = 1}, /*functions=*/3);
  for (const uint64_t f : {1, 2}) {
    Result(f, 0);
    Committed();
    d_.Ended(f);
    if (f > 1) continue;
    d_.Want(5, {.kind = ServerTask::Kind::kSave});
    d_.Step(event::Saved{CheckpointNumber(1), absl::OkStatus()});
    d_.Step(event::ManifestWritten{CheckpointNumber(1), absl::OkStatus()});
  }
  EXPECT_EQ(d_.core.queue().round(), 3u);
  d_.Step(event::DaemonDied{100, "killed"});
  EXPECT_THAT(d_.Join(pb::ROLE_PSSERVER, 200, 0), HasSubstr("1 steps of 1 functions since"));
  EXPECT_EQ(d_.core.queue().round(), 2u);
}

// Schedules of learning rates count rounds.
TEST_F(CoreRounds, AJobThatGoesOnCountsItsRoundsFurther) {
  Serve(1, {.replicas = 1});
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  point->job.functions.round = 6;
  d_.Want(
      2,
      {.kind = ServerTask::Kind::kLoad, .loaded = CheckpointNumber(4), .point = std::move(point)});
  const action::Load load = d_.Last<action::Load>();
  d_.Step(event::Loaded{.attempt = load.attempt, .updates = {0, 0}});
  EXPECT_EQ(d_.core.queue().round(), 6u);
  d_.Routing(2, load.generation.value());
  d_.Installed(0, 10);
  d_.Schedule();
  ASSERT_TRUE(Runs(1));
  EXPECT_EQ(d_.runs.at(FunctionId(1)).round, 6u);
  EXPECT_THAT(Result(1, 0), HasSubstr("commit 6: 1 (1)"));
}

TEST_F(CoreRounds, RecoveryOfSingleServersIsRefused) {
  d_.Step(event::EnableRecovery{RecoveryMode::kShard});
  d_.Step(event::SetRounds{{.replicas = 2}});
  EXPECT_FALSE(d_.core.queue().rounds().on());
}

TEST_F(CoreRounds, RoundsBeginWhenNothingIsUnfinished) {
  d_.Serve(/*workers=*/1);
  d_.Schedule();
  d_.Step(event::SetRounds{{.replicas = 2}});
  EXPECT_FALSE(d_.core.queue().rounds().on());
}

}  // namespace
}  // namespace mu
