// What callers may do now, have to wait for, or are refused.
#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::StatusIs;
using Code = absl::StatusCode;

constexpr GroupId kEval{1};

FunctionWork Eval(uint64_t dataset = 0) {
  return {.fingerprint = Fingerprint(6), .name = "eval", .dataset = dataset, .group = kEval};
}

TEST(CorePermissions, ACallWaitsForRoomInItsOwnQueue) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::GroupMade{kEval});
  for (int i = 0; i < 999; ++i) d.Schedule();
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
  d.Schedule();
  EXPECT_TRUE(d.core.MaySchedule({}).wait);
  EXPECT_TRUE(d.core.MaySchedule(Eval()).granted());
}

TEST(CorePermissions, ARoundThatNeedsMoreThanFitHasRoom) {
  CoreDriver d;
  d.Step(event::SetRounds{{.replicas = 1000, .backups = 2}});
  d.Serve(0);
  for (int i = 0; i < 1001; ++i) d.Schedule();
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
  d.Schedule();
  EXPECT_TRUE(d.core.MaySchedule({}).wait);
}

TEST(CorePermissions, ACallIsRefusedWithTheEarliestError) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::GroupMade{kEval});
  for (int i = 0; i < 1000; ++i) d.Schedule();
  const absl::Status unseen = absl::OutOfRangeError("unseen");
  EXPECT_THAT(d.core.MaySchedule({}, unseen).refusal, StatusIs(Code::kOutOfRange, "unseen"))
      << "although there is no room";
  d.Step(event::CancelEverything{});
  EXPECT_TRUE(d.core.MaySchedule({}, unseen).wait) << "its cancellation has not ended";
  EXPECT_TRUE(d.core.MaySchedule(Eval()).granted());
  d.Step(event::Fenced{d.Last<action::FenceServers>().attempt});
  EXPECT_TRUE(d.core.MaySchedule({}).granted());
  FunctionWork wrong = Eval();
  wrong.trains = true;
  EXPECT_THAT(d.core.MaySchedule(wrong).refusal, HasCode(Code::kInvalidArgument));
  d.Step(event::Fail{absl::UnavailableError("over")});
  EXPECT_THAT(d.core.MaySchedule(wrong).refusal, StatusIs(Code::kUnavailable, "over"));
  EXPECT_THAT(d.core.MaySchedule({}, unseen).refusal, StatusIs(Code::kOutOfRange, "unseen"));
}

TEST(CorePermissions, WhatFollowsTrainingWaitsForRepeatsAndIsRefusedBeforeThem) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_TRUE(d.core.TrainingIsOver().granted());
  d.Schedule();
  const auto refused = HasCode(Code::kFailedPrecondition);
  EXPECT_THAT(d.core.TrainingIsOver().refusal, refused);
  EXPECT_THAT(d.core.MaySetRounds({.replicas = 2}).refusal, refused);
  EXPECT_TRUE(d.core.MaySetRounds({}).granted()) << "nothing changes";
  EXPECT_THAT(d.core.MayStartEpoch(/*dataset=*/0).refusal, refused) << "what the function has";
  EXPECT_TRUE(d.core.MayStartEpoch(7).granted()) << "it reads other data";
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_TRUE(d.core.TrainingIsOver().granted());
  EXPECT_TRUE(d.core.MaySetRounds({.replicas = 2}).granted());
  EXPECT_TRUE(d.core.MayStartEpoch(0).granted());
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_TRUE(d.core.TrainingIsOver().wait);
  EXPECT_TRUE(d.core.MaySetRounds({.replicas = 2}).wait);
  EXPECT_TRUE(d.core.MayStartEpoch(0).wait);
  EXPECT_TRUE(d.core.MayStartEpoch(7).granted());
  d.Step(event::SetRounds{{.replicas = 2}});
  EXPECT_FALSE(d.core.queue().rounds().on());
  d.Schedule();
  EXPECT_THAT(d.core.TrainingIsOver().refusal, refused) << "this one is no repeat";
}

TEST(CorePermissions, WhatFollowsTrainingWaitsForACancellation) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Step(event::CancelEverything{});
  EXPECT_TRUE(d.core.TrainingIsOver().wait);
  EXPECT_TRUE(d.core.MaySetRounds({.replicas = 2}).wait);
  EXPECT_TRUE(d.core.MayStartEpoch(0).wait);
  EXPECT_TRUE(d.core.MayStartEpoch(7).wait) << "its functions are to start afterwards";
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  d.Step(event::Fenced{d.Last<action::FenceServers>().attempt});
  EXPECT_TRUE(d.core.TrainingIsOver().granted());
  EXPECT_TRUE(d.core.MaySetRounds({.replicas = 2}).granted());
  EXPECT_TRUE(d.core.MayStartEpoch(7).granted());
  d.Step(event::Fail{absl::UnavailableError("over")});
  EXPECT_THAT(d.core.TrainingIsOver().refusal, HasCode(Code::kUnavailable));
  EXPECT_THAT(d.core.MaySetRounds({.replicas = 2}).refusal, HasCode(Code::kUnavailable));
  EXPECT_THAT(d.core.MayStartEpoch(7).refusal, HasCode(Code::kUnavailable));
}

TEST(CorePermissions, AnEpochOfWhatAGroupReadsIsRefusedAndTrainingIsOver) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::GroupMade{kEval});
  d.Step(event::Schedule{Eval(/*dataset=*/7)});
  EXPECT_THAT(d.core.MayStartEpoch(7).refusal,
              StatusIs(Code::kFailedPrecondition, HasSubstr("Cancel the group")));
  EXPECT_TRUE(d.core.MayStartEpoch(8).granted());
  EXPECT_TRUE(d.core.TrainingIsOver().granted());
  d.Schedule();
  EXPECT_THAT(d.core.MayStartEpoch(7).refusal,
              StatusIs(Code::kFailedPrecondition, HasSubstr("Join first")));
}

TEST(CorePermissions, RoundsAreRefusedWithRecoveryOfSingleServers) {
  CoreDriver d;
  d.Step(event::EnableRecovery{RecoveryMode::kShard});
  EXPECT_THAT(d.core.MaySetRounds({.replicas = 2}).refusal, HasCode(Code::kInvalidArgument));
}

}  // namespace
}  // namespace mu
