// What waits for functions that had finished and run again, because a server was lost.
#include <gmock/gmock.h>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::CoreDriver;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = ServerTask::Kind;

// The only server is lost, and another one has taken its place. What follows when it is restored.
std::string ReplaceServer(uint64_t lost, uint64_t next, uint64_t generation, CoreDriver* d) {
  d->Step(event::DaemonDied{static_cast<int64_t>(lost)});
  d->Join(pb::ROLE_PSSERVER, next, 0);
  d->Routing(generation, generation);
  d->Installed(0, 10);
  return d->Restored(generation);
}

class CoreRepeatsTest : public ::testing::Test {
 protected:
  // Function 1 had finished when the only server was lost.
  CoreRepeatsTest() {
    d_.Serve(1);
    d_.Schedule();
    d_.Result(1, 0);
    d_.Ended(1);
    EXPECT_EQ(ReplaceServer(100, 200, 2, &d_), "use routing; serve in 2; start 1 on 0 from 0");
  }
  // Function 1 ends once more.
  std::string Repeated() {
    EXPECT_EQ(d_.Result(1, 0), "");
    return d_.Ended(1);
  }
  std::string Read() {
    FunctionWork work;
    work.name = "read";
    work.fingerprint = Fingerprint(6);
    return d_.Step(event::Schedule{std::move(work)});
  }
  static ServerTask Assign() {
    return {.kind = Kind::kAssign, .assignment = std::make_shared<Assignment>()};
  }

  CoreDriver d_;
};

TEST_F(CoreRepeatsTest, WhoReadsAfterTrainingWaits) {
  EXPECT_EQ(d_.Want(8, {.kind = Kind::kReady, .after_repeats = true}), "");
  EXPECT_EQ(d_.Want(9, {.kind = Kind::kReady}), "done 9 OK");
  EXPECT_EQ(Repeated(), "finish 1 OK; done 8 OK");
}

TEST_F(CoreRepeatsTest, WhoReadsBesideTheNextTurnWaits) {
  EXPECT_EQ(d_.Schedule(), "scheduled 2");
  EXPECT_EQ(d_.Want(8, {.kind = Kind::kReady, .after_repeats = true}), "");
  EXPECT_EQ(d_.Want(9, {.kind = Kind::kSave, .after_repeats = true}), "");
  EXPECT_EQ(Repeated(), "finish 1 OK; done 8 OK; save 1; start 2 on 0 from 0");
}

TEST(RepeatsOfOneTurn, WhoReadsBesideThemDoesNotWait) {
  CoreDriver d;
  d.Serve(1);
  for (int i = 0; i < 2; ++i) d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  ReplaceServer(100, 200, 2, &d);
  EXPECT_EQ(d.Want(8, {.kind = Kind::kReady, .after_repeats = true}), "done 8 OK");
}

TEST_F(CoreRepeatsTest, WhoReadsBesideWhatOnlyReadsWaits) {
  EXPECT_EQ(Read(), "scheduled 2");
  EXPECT_EQ(d_.Want(8, {.kind = Kind::kReady, .after_repeats = true}), "");
  EXPECT_EQ(d_.Want(9, {.kind = Kind::kSave, .after_repeats = true}), "");
  EXPECT_EQ(Repeated(), "finish 1 OK; done 8 OK; save 1; start 2 on 0 from 0");
}

// Its user may have joined before it was scheduled.
TEST_F(CoreRepeatsTest, WhatIsScheduledAfterTrainingRunsAfterIt) {
  EXPECT_EQ(d_.Schedule(), "scheduled 2");
  EXPECT_EQ(d_.Schedule(), "scheduled 3");
  EXPECT_EQ(Repeated(), "finish 1 OK; start 2 on 0 from 0; start 3 on 0 from 0") << "one turn";
}

// Functions 1 and 2 were two turns.
TEST_F(CoreRepeatsTest, RepeatsOfTurnsAreTurns) {
  EXPECT_EQ(Repeated(), "finish 1 OK");
  EXPECT_EQ(d_.Schedule(), "scheduled 2; start 2 on 0 from 0");
  d_.Result(2, 0);
  d_.Ended(2);
  EXPECT_EQ(ReplaceServer(200, 300, 3, &d_), "use routing; serve in 3; start 1 on 0 from 0");
  EXPECT_EQ(Repeated(), "finish 1 OK; start 2 on 0 from 0");
}

// A coordinator that continues the job knows them from the checkpoint's position.
TEST(ResumedRepeatsTest, TurnsOfAnEarlierCoordinatorAreTurns) {
  const auto no_data = [](uint64_t, WorkerId, uint32_t) { return std::nullopt; };
  FunctionQueue::Position position;
  position.next_id = FunctionId(3);
  for (const uint64_t id : {1, 2}) {
    FunctionQueue::Function& function = position.unfinished[FunctionId(id)];
    function.after = FunctionId(id);
    function.steps = function.work.steps = 1;
    function.work.trains = function.work.updates = true;
  }
  FunctionQueue queue(4, no_data);
  queue.WorkerReady(WorkerId(0), 1);
  queue.Resume(CheckpointNumber(1), position);
  queue.Schedule({.steps = 1, .trains = true, .updates = true});
  std::vector<FunctionId> completed;
  const auto first = queue.Dispatch(&completed);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].function, FunctionId(1));
  queue.StepDone(first[0].function, first[0].run, 0);
  queue.RunEnded(first[0].function, first[0].run);
  EXPECT_EQ(queue.Dispatch(&completed).size(), 2u) << "of the same turn, as far as is known";
}

TEST_F(CoreRepeatsTest, WhatIsSavedAfterTrainingIsWhole) {
  EXPECT_EQ(d_.Want(8, {.kind = Kind::kSave, .after_repeats = true}), "");
  EXPECT_EQ(Repeated(), "finish 1 OK; save 1");
}

TEST_F(CoreRepeatsTest, ACheckpointThatSaysWhatItLacksDoesNotWait) {
  EXPECT_EQ(d_.Want(8, {.kind = Kind::kSave, .after_repeats = true}), "");
  EXPECT_EQ(d_.Want(9, {.kind = Kind::kSave}), "save 1") << "it makes room for what is repeated";
}

TEST_F(CoreRepeatsTest, AnAssignmentComesAfterWhatHadFinished) {
  EXPECT_EQ(d_.Want(8, Assign()), "");
  EXPECT_EQ(Repeated(), "finish 1 OK; assign 2");
}

TEST_F(CoreRepeatsTest, WhatOnlyReadsStartsAfterWhatHadFinished) {
  EXPECT_EQ(Read(), "scheduled 2");
  EXPECT_EQ(d_.Schedule(), "scheduled 3") << "nothing overtakes it";
  EXPECT_EQ(Repeated(), "finish 1 OK; start 2 on 0 from 0; start 3 on 0 from 0");
}

class GroupRepeatsTest : public CoreRepeatsTest {
 protected:
  GroupRepeatsTest() { d_.Step(event::GroupMade{GroupId(1), ViewId()}); }
  std::string Evaluate() {
    FunctionWork work;
    work.name = "read";
    work.fingerprint = Fingerprint(6);
    work.group = GroupId(1);
    return d_.Step(event::Schedule{std::move(work)});
  }
};

TEST_F(GroupRepeatsTest, CurrentValuesAreReadAfterAllOfTrainingThatHasFinished) {
  EXPECT_THAT(Evaluate(), Not(HasSubstr("start")));
  EXPECT_THAT(Repeated(), HasSubstr("start"));
}

TEST_F(GroupRepeatsTest, CurrentValuesAreReadBesideTheNextTurnAfterTheOneBefore) {
  EXPECT_EQ(d_.Schedule(), "scheduled 2");
  EXPECT_THAT(Evaluate(), Not(HasSubstr("start")));
  EXPECT_THAT(Repeated(), AllOf(HasSubstr("start 2 on 0"),
                                HasSubstr(absl::StrCat("start ", kFirstInGroups.value()))));
}

TEST_F(GroupRepeatsTest, RepeatsThatAreCancelledAreMadeAgainFirst) {
  d_.Step(event::CancelEverything{});
  EXPECT_THAT(Evaluate(), Not(HasSubstr("start")));
  EXPECT_THAT(d_.TickAfter(absl::Milliseconds(1)), Not(HasSubstr("start")));
}

}  // namespace
}  // namespace mu
