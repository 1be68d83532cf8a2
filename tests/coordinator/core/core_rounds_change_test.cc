// Synchronous rounds that change their size, or begin anew after another mode.
#include <gmock/gmock.h>

#include "tests/coordinator/core/core_rounds_fixture.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

class CoreRoundsChange : public testing::CoreRoundsTest {};

TEST_F(CoreRoundsChange, AnotherSizeOfRoundsGoesOnWithTheNextRound) {
  Serve(2, {.replicas = 2}, /*functions=*/4);
  for (const uint64_t first : {1, 3}) {
    Result(first, 0);
    d_.Ended(first);
    EXPECT_THAT(Result(first + 1, 0), HasSubstr(absl::StrCat("commit ", first / 2 + 1, ": ")));
    d_.Ended(first + 1);
    Committed();
  }
  EXPECT_EQ(d_.Step(event::SetRounds{{.replicas = 4}}), "");
  EXPECT_EQ(d_.core.queue().round(), 3u) << "a round is one update, whatever its size";
  for (int f = 0; f < 4; ++f) EXPECT_THAT(d_.Schedule(), HasSubstr("start"));
  for (const uint64_t f : {5, 6, 7}) EXPECT_EQ(Result(f, 0), absl::StrCat("keep ", f));
  EXPECT_EQ(Result(8, 0), "keep 8; commit 3: 5 (1), 6 (1), 7 (1), 8 (1)");
}

// Steps of another mode are updates as well, so the number grows by more than 1, and servers that
// have applied a round are told so before anything starts.
TEST_F(CoreRoundsChange, AfterAnotherModeServersAreToldWhichRoundIsTheNext) {
  Serve(1, {.replicas = 1}, /*functions=*/1);
  EXPECT_THAT(Result(1, 0), HasSubstr("commit 1: 1 (1)"));
  d_.Ended(1);
  Committed();
  EXPECT_EQ(d_.Step(event::SetRounds{}), "");
  EXPECT_THAT(d_.Schedule(/*steps=*/3), HasSubstr("start 2 on 0")) << "of no round";
  EXPECT_EQ(d_.runs.at(FunctionId(2)).round, 0u);
  for (uint32_t step = 0; step < 3; ++step) EXPECT_EQ(Result(2, step), "deliver 2");
  d_.Ended(2);
  EXPECT_EQ(Note(d_.Step(event::SetRounds{{.replicas = 1}})), "commit 4: ");
  EXPECT_EQ(d_.Schedule(), "scheduled 3") << "no server takes its contribution yet";
  EXPECT_EQ(Committed(testing::Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER)), "");
  EXPECT_EQ(TickAfterFailures(1), "commit 4: ");
  EXPECT_EQ(Committed(), "start 3 on 0 from 0");
  EXPECT_EQ(d_.runs.at(FunctionId(3)).round, 5u);
  EXPECT_EQ(Result(3, 0), "keep 3; commit 5: 3 (1)");
  EXPECT_THAT(Committed(), HasSubstr("finish 3 OK"));
  EXPECT_EQ(d_.core.rounds().committed, 2u) << "the one without steps is none";
}

TEST_F(CoreRoundsChange, WhatGroupsReadWaitsForNoRound) {
  Serve(1, {.replicas = 1}, /*functions=*/1);
  Result(1, 0);
  d_.Ended(1);
  Committed();
  d_.Step(event::SetRounds{});
  d_.Schedule();
  Result(2, 0);
  d_.Ended(2);
  EXPECT_EQ(Note(d_.Step(event::SetRounds{{.replicas = 1}})), "commit 2: ");
  d_.Step(event::GroupMade{GroupId(1), ViewId()});
  FunctionWork work = {.fingerprint = Fingerprint(6), .name = "eval", .group = GroupId(1)};
  EXPECT_THAT(d_.Step(event::Schedule{std::move(work)}), HasSubstr("start"));
}

TEST_F(CoreRoundsChange, ServersOfANewGenerationTakeAnyRound) {
  Serve(1, {.replicas = 1}, /*functions=*/1);
  Result(1, 0);
  d_.Ended(1);
  Committed();
  d_.Step(event::SetRounds{});
  d_.Schedule();
  Result(2, 0);
  d_.Ended(2);
  d_.Step(event::DaemonDied{100, "killed"});
  d_.Join(pb::ROLE_PSSERVER, 200, 0);
  d_.Restored(2);
  d_.Routing(2, 2);
  d_.Installed(0, 10);
  for (const uint64_t f : {1, 2}) {
    Result(f, 0);
    d_.Ended(f);
  }
  ASSERT_EQ(d_.core.queue().unfinished(), 0u);
  EXPECT_EQ(d_.Step(event::SetRounds{{.replicas = 1}}), "") << "they have applied none";
  EXPECT_EQ(d_.Schedule(), "scheduled 3; start 3 on 0 from 0");
  EXPECT_EQ(d_.runs.at(FunctionId(3)).round, 3u);
}

TEST_F(CoreRoundsChange, APointKeepsItsRoundWhenTheirSizeChanges) {
  Serve(1, {.replicas = 1}, /*functions=*/2);
  Result(1, 0);
  d_.Ended(1);
  Committed();
  d_.Want(5, {.kind = ServerTask::Kind::kSave});
  d_.Step(event::Saved{CheckpointNumber(1), absl::OkStatus()});
  d_.Step(event::ManifestWritten{CheckpointNumber(1), absl::OkStatus()});
  Result(2, 0);
  d_.Ended(2);
  Committed();
  d_.Step(event::SetRounds{{.replicas = 2}});
  EXPECT_EQ(d_.core.queue().round(), 3u);
  d_.Step(event::DaemonDied{100, "killed"});
  d_.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d_.core.queue().round(), 2u) << "the rates are those of what runs again";
}

TEST_F(CoreRoundsChange, WhoGaveToTheLastRoundMayBeABackupOfTheNext) {
  Serve(2, {.replicas = 1, .backups = 1}, /*functions=*/1);
  d_.now += absl::Seconds(1);
  Result(1, 0);
  d_.Ended(1);
  Committed();
  d_.Step(event::GroupMade{GroupId(1), ViewId()});
  FunctionWork work;
  work.fingerprint = Fingerprint(6);
  work.group = GroupId(1);
  d_.Step(event::Schedule{std::move(work)});  // beside it on worker 0
  EXPECT_EQ(d_.Schedule(), "scheduled 2; start 2 on 1 from 0");
  EXPECT_EQ(d_.Schedule(), "scheduled 3; start 3 on 0 from 0")
      << "it has given nothing to this one";
}

// What a lost server took with it is repeated in rounds, too.
class RepeatedRounds : public testing::CoreRoundsTest {
 protected:
  // In a round of its own.
  void TrainOneFunction() {
    Serve(1, {.replicas = 1}, /*functions=*/1);
    Result(1, 0);
    d_.Ended(1);
    Committed();
  }
};

TEST_F(RepeatedRounds, DoNotWaitForTheNextTurn) {
  Serve(1, {.replicas = 2}, /*functions=*/1);
  Result(1, 0);
  d_.Ended(1);
  Note(d_.Step(event::NothingMore{}));
  Committed();
  LoseServer();
  EXPECT_EQ(d_.Schedule(), "scheduled 2");
  EXPECT_EQ(Result(1, 0), "keep 1; commit 1: 1 (1)");
}

TEST_F(RepeatedRounds, DoNotWaitForWhatAReaderHoldsUp) {
  Serve(1, {.replicas = 2}, /*functions=*/3);
  FunctionWork read;
  read.fingerprint = Fingerprint(6);
  d_.Step(event::Schedule{std::move(read)});  // function 4, of this turn
  const auto round = [this] {
    for (const uint64_t f : {1, 2}) {
      Result(f, 0);
      d_.Ended(f);
    }
    Committed();
  };
  round();
  Result(3, 0);
  d_.Ended(3);
  Note(d_.Step(event::NothingMore{}));
  Committed();
  d_.Schedule();  // still of this turn, since function 4 has not ended
  LoseServer();
  round();
  EXPECT_EQ(Result(3, 0), "keep 3; commit 2: 3 (1)");
}

// And nobody says that there is nothing more.
TEST_F(RepeatedRounds, ThatHaveBecomeSmallWaitForNobody) {
  TrainOneFunction();
  d_.Step(event::SetRounds{{.replicas = 2}});
  LoseServer();
  EXPECT_EQ(Result(1, 0), "keep 1; commit 1: 1 (1)");
}

TEST_F(RepeatedRounds, AnAssignmentComesAfterThoseOfTheTurnBefore) {
  TrainOneFunction();
  LoseServer();
  EXPECT_EQ(d_.Schedule(), "scheduled 2");
  EXPECT_EQ(
      d_.Want(8, {.kind = ServerTask::Kind::kAssign, .assignment = std::make_shared<Assignment>()}),
      "");
}

// Rounds that are asked for after the job was restored count further as well.
TEST_F(CoreRoundsChange, StepsOfTheRestoredRoundsAreNotCountedAgain) {
  d_.Serve(/*workers=*/1);
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  point->job.functions.round = 6;
  point->job.taken_steps = 20;
  d_.Want(
      2,
      {.kind = ServerTask::Kind::kLoad, .loaded = CheckpointNumber(4), .point = std::move(point)});
  const action::Load load = d_.Last<action::Load>();
  d_.Step(event::Loaded{.attempt = load.attempt, .updates = {0, 0}});
  EXPECT_EQ(d_.Step(event::SetRounds{{.replicas = 2}}), "");
  EXPECT_EQ(d_.core.queue().round(), 6u);
  d_.Step(event::SetRounds{});
  d_.Routing(2, load.generation.value());
  d_.Installed(0, 10);
  d_.Schedule(/*steps=*/2);
  for (uint32_t step = 0; step < 2; ++step) Result(1, step);
  d_.Ended(1);
  EXPECT_EQ(d_.Step(event::SetRounds{{.replicas = 2}}), "") << "no round of this generation";
  EXPECT_EQ(d_.core.queue().round(), 23u) << "where steps were counted meanwhile";
}

}  // namespace
}  // namespace mu
