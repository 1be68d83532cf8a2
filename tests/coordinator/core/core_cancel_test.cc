// What follows an error: from which state, in which order, under which mark.
#include <gmock/gmock.h>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::MachineFault;
using testing::Typed;

absl::Status UserError() { return Typed(pb::ERROR_USER); }

TEST(CoreCancel, AnErrorEndsAllThatWasScheduledAndIsReportedLast) {
  CoreDriver d(2);
  d.Serve(2);
  for (int i = 0; i < 6; ++i) d.Schedule(2);
  ASSERT_EQ(d.core.queue().low_water(), FunctionId(1));
  // The mark of the cancellation is above the last function, not at the oldest unfinished one.
  EXPECT_EQ(d.Ended(1, UserError()),
            "finish 1 FAILED_PRECONDITION; finish 2 CANCELLED; finish 3 CANCELLED; finish 4 "
            "CANCELLED; finish 5 CANCELLED; finish 6 CANCELLED; cancel below 7 in generation 1 on "
            "2");
  EXPECT_EQ(d.Schedule(), "scheduled 7") << "nothing is started while an error is dealt with";
  EXPECT_EQ(d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)}), "");
  EXPECT_EQ(d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)}), "") << "twice";
  EXPECT_EQ(d.Step(event::WorkerCancelled{WorkerId(1), Incarnation(11)}),
            "fence below 7 in generation 1");
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}),
            "cancelled FAILED_PRECONDITION; start 7 on 0 from 0");
  EXPECT_FALSE(d.core.cancelling());
}

TEST(CoreCancel, AServerThatStallsIsAskedAgainOneThatIsLostIsNot) {
  CoreDriver d(2);
  d.Serve(1);
  d.Schedule();
  d.Step(event::CancelEverything{});
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  const uint64_t first = d.Last<action::FenceServers>().attempt;
  EXPECT_EQ(d.Step(event::Fenced{first, {{0, CallError::Of(MachineFault())}}}), "");
  EXPECT_EQ(d.core.alarm(), d.now + CoreDriver::kHeartbeat);
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(999)), "");
  EXPECT_EQ(d.TickAfter(absl::Milliseconds(1)), "fence below 2 in generation 1");
  const uint64_t second = d.Last<action::FenceServers>().attempt;
  EXPECT_EQ(d.Step(event::Fenced{first}), "") << "the answer to the first try comes late";
  EXPECT_NE(first, second);
  EXPECT_EQ(d.Step(event::DaemonDied{101}), "server 1 died; interrupt; pause; stop run 1 on 0");
  EXPECT_EQ(d.Step(event::Fenced{second, {{0, CallError::Of(MachineFault())}}}), "cancelled OK");
}

// Whoever takes checkpoints beside the program does not know that training has failed. Continued
// from there, the job would lack the data of what was cancelled.
TEST(CoreCancel, NothingIsSavedInTheBackgroundBeforeTrainingGoesOn) {
  const ServerTask save = {.kind = ServerTask::Kind::kSave};
  const ServerTask beside = {.kind = ServerTask::Kind::kSave, .background = true};
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  EXPECT_EQ(d.Want(7, beside), "save 1");
  EXPECT_EQ(d.Want(8, beside), "") << "it waits for that one";
  EXPECT_THAT(d.Step(event::CancelEverything{}), ::testing::HasSubstr("done 8 CANCELLED"));
  EXPECT_EQ(d.Want(9, beside), "done 9 CANCELLED");
  EXPECT_EQ(d.Want(10, save), "") << "the program knows";
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  EXPECT_THAT(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}),
              ::testing::StartsWith("cancelled OK"));
  EXPECT_EQ(d.Want(11, beside), "done 11 CANCELLED") << "the cancellation is over";
  FunctionWork read;
  read.fingerprint = Fingerprint(6);
  d.Step(event::Schedule{std::move(read)});
  EXPECT_EQ(d.Want(12, beside), "done 12 CANCELLED") << "it does not train";
  d.Schedule();
  EXPECT_EQ(d.Want(13, beside), "");
}

TEST(CoreCancel, AJobThatIsContinuedAfterwardsIsSavedInTheBackground) {
  const ServerTask beside = {.kind = ServerTask::Kind::kSave, .background = true};
  CoreDriver d;
  d.Serve(1);
  d.Step(event::CancelEverything{});
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}), "cancelled OK");
  EXPECT_EQ(d.Want(7, beside), "done 7 CANCELLED");
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  d.Want(8, {.kind = ServerTask::Kind::kLoad, .point = point});
  d.Step(event::Loaded{.attempt = testing::Attempt(d), .updates = {0}});
  EXPECT_THAT(d.Want(9, beside), ::testing::HasSubstr("save"));
}

TEST(CoreCancel, AWorkerThatDoesNotConfirmIsLost) {
  CoreDriver d;
  d.Serve(2);
  d.Step(event::CancelEverything{});
  EXPECT_EQ(
      d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10), CallError::Of(MachineFault())}),
      "worker 0 unreachable");
  EXPECT_EQ(d.Step(event::DaemonDied{11}), "worker 1 died; fence below 1 in generation 1");
}

TEST(CoreCancel, AnAnswerOfAnotherCancellationDoesNotCount) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CancelEverything{});
  const uint64_t first = d.Last<action::FenceServers>().attempt;
  d.Step(event::Fenced{first});
  d.Schedule();
  EXPECT_EQ(d.Step(event::CancelEverything{}), "finish 1 CANCELLED; fence below 2 in generation 1");
  EXPECT_EQ(d.Step(event::Fenced{first}), "");
  EXPECT_TRUE(d.core.cancelling());
}

TEST(CoreCancel, TheFirstOfSeveralErrorsIsReported) {
  CoreDriver d;
  d.Serve(2);
  d.Schedule();
  d.Schedule();
  d.Ended(1, UserError());
  EXPECT_EQ(d.Define(9), "install function 9 on 0; install function 9 on 1");
  EXPECT_EQ(d.Installed(0, 10, testing::FoundWrong()), "");
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  d.Step(event::WorkerCancelled{WorkerId(1), Incarnation(11)});
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}),
            "cancelled FAILED_PRECONDITION");
  EXPECT_THAT(d.core.RefusalOf(Fingerprint(9)),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
}

// A worker runs its functions in order; the ends of two runs may overtake each other on the way.
TEST(CoreCancel, ErrorsOfOneWorkerAreTakenInTheOrderOfItsRuns) {
  CoreDriver d;
  d.Serve(1);
  d.Schedule();
  d.Schedule();
  EXPECT_EQ(d.Ended(2, absl::Status(Typed(pb::ERROR_USER).code(), "")), "") << "waits for run 1";
}

TEST(CoreCancel, ACancellationEndsACheckpointWhoseCutsAreNotTaken) {
  CoreDriver d;
  d.Serve(1);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_EQ(d.Step(event::CancelEverything{}),
            "aborted 1; done 2 UNAVAILABLE; cancel below 1 in generation 1 on 1");
  EXPECT_EQ(d.Want(3, {.kind = ServerTask::Kind::kSave}), "") << "it waits for the end of it";
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "") << "too late";
}

TEST(CoreCancel, ACheckpointWhoseCutsAreTakenOutlivesACancellation) {
  CoreDriver d;
  d.Serve(0);
  d.Want(2, {.kind = ServerTask::Kind::kSave});
  EXPECT_EQ(d.Step(event::Saved{CheckpointNumber(1)}), "write manifest");
  d.Step(event::CancelEverything{});
  EXPECT_EQ(d.Step(event::ManifestWritten{CheckpointNumber(1)}), "committed 1; done 2 OK");
}

// Its heartbeats arrive, so its silence does not tell.
TEST(CoreCancel, AServerThatAnswersNoFenceForThreeTimeoutsIsReplaced) {
  CoreDriver d(2);
  d.Serve(0);
  EXPECT_EQ(d.Step(event::CancelEverything{}), "fence below 1 in generation 1");
  const CallError no_answer =
      CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, /*index=*/1));
  for (int second = 0; second < 30; ++second) {
    const uint64_t attempt = d.Last<action::FenceServers>().attempt;
    EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "") << second;
    for (uint32_t s = 0; s < 2; ++s) d.Beat(pb::ROLE_PSSERVER, 100 + s, s);
    EXPECT_EQ(d.TickAfter(CoreDriver::kHeartbeat), "fence below 1 in generation 1") << second;
  }
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt, {{1, no_answer}}}),
            "server 1 hangs; interrupt; pause; cancelled OK");
  EXPECT_EQ(d.Join(pb::ROLE_PSSERVER, 101, 1), "refuse FAILED_PRECONDITION");
}

// Three seconds of every seven: they do not count, and what counts does not begin again after them.
TEST(CoreCancel, AServerThatAnswersNoFenceIsReplacedThoughTheCoordinatorStutters) {
  CoreDriver d(2);
  d.Serve(0);
  EXPECT_EQ(d.Step(event::CancelEverything{}), "fence below 1 in generation 1");
  const CallError no_answer =
      CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, /*index=*/1));
  for (int tick = 1, seconds = 0; seconds < 30; ++tick) {
    const uint64_t attempt = d.Last<action::FenceServers>().attempt;
    EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "") << seconds;
    for (uint32_t s = 0; s < 2; ++s) d.Beat(pb::ROLE_PSSERVER, 100 + s, s);
    const bool stands_still = tick % 5 == 0;
    if (!stands_still) ++seconds;
    EXPECT_EQ(d.TickAfter(stands_still ? 3 * CoreDriver::kHeartbeat : CoreDriver::kHeartbeat),
              "fence below 1 in generation 1")
        << seconds;
  }
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt, {{1, no_answer}}}),
            "server 1 hangs; interrupt; pause; cancelled OK");
}

TEST(CoreCancel, WhatTheCoordinatorsStandstillBrokeIsAskedAgain) {
  CoreDriver d;
  d.Serve(2);
  d.Step(event::CancelEverything{});
  const auto fail = [&] {
    return d.Step(
        event::WorkerCancelled{WorkerId(0), Incarnation(10), CallError::Of(MachineFault())});
  };
  d.now += absl::Minutes(1);
  EXPECT_EQ(fail(), "cancel below 1 in generation 1 on 1");
  d.now += 3 * CoreDriver::kHeartbeat;
  EXPECT_EQ(fail(), "worker 0 unreachable") << "so short a standstill breaks no connection";
  EXPECT_EQ(d.Step(event::WorkerCancelled{WorkerId(1), Incarnation(11)}),
            "fence below 1 in generation 1");
}

TEST(CoreCancel, TheCoordinatorsStandstillIsNoSilenceOfAServer) {
  CoreDriver d(2);
  d.Serve(0);
  EXPECT_EQ(d.Step(event::CancelEverything{}), "fence below 1 in generation 1");
  const uint64_t attempt = d.Last<action::FenceServers>().attempt;
  d.now += 10 * CoreDriver::kTimeout;
  const CallError no_answer = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 1));
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "");
  EXPECT_EQ(d.TickAfter(CoreDriver::kHeartbeat), "fence below 1 in generation 1");
}

// It keeps its state, so it must refuse what was cancelled before users are told.
TEST(CoreCancel, WithRecoveryOfSingleServersTheOthersAreWaitedFor) {
  CoreDriver d(2);
  d.Step(event::EnableRecovery{RecoveryMode::kShard});
  d.Serve(0);
  EXPECT_EQ(d.Step(event::CancelEverything{}), "fence below 1 in generation 1");
  d.Step(event::DaemonDied{100});
  const CallError no_answer =
      CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, /*index=*/1));
  uint64_t attempt = 1;
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "") << "server 1 may still apply it";
  EXPECT_EQ(d.TickAfter(CoreDriver::kHeartbeat), "fence below 1 in generation 1");
  attempt = d.Last<action::FenceServers>().attempt;
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "")
      << "it has not taken the new generation";
  d.Restored(2);
  d.TickAfter(CoreDriver::kHeartbeat);
  attempt = d.Last<action::FenceServers>().attempt;
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, no_answer}}}), "cancelled OK");
}

// What takes its place has a newer generation, and nobody may come for hours.
TEST(CoreCancel, ALostServerIsNotWaitedFor) {
  for (const RecoveryMode mode : {RecoveryMode::kAll, RecoveryMode::kShard}) {
    CoreDriver d(2);
    d.Step(event::EnableRecovery{mode});
    d.Serve(0);
    d.Step(event::CancelEverything{});
    const uint64_t attempt = d.Last<action::FenceServers>().attempt;
    d.Step(event::DaemonDied{101});
    const CallError gone = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 1));
    EXPECT_EQ(d.Step(event::Fenced{attempt, {{1, gone}}}), "cancelled OK");
  }
}

// The call went to the process that had the place before.
TEST(CoreCancel, AServerThatHasTakenALostOnesPlaceIsNotTakenForOneThatHangs) {
  CoreDriver d;
  d.Serve(0);
  d.Step(event::CancelEverything{});
  const uint64_t attempt = d.Last<action::FenceServers>().attempt;
  d.Step(event::DaemonDied{100});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  d.now += 5 * CoreDriver::kTimeout;
  d.Beat(pb::ROLE_PSSERVER, 200, 0);
  const CallError gone = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{0, gone}}}), "cancelled OK");
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2");
}

// The round waits for the other place, so nobody has a newer generation yet.
TEST(CoreCancel, AServerWithoutStateIsNotAskedWhileAnotherPlaceIsEmpty) {
  CoreDriver d(3);
  d.Step(event::EnableRecovery{RecoveryMode::kShard});
  d.Serve(0);
  d.Step(event::CancelEverything{});
  EXPECT_THAT(d.Last<action::FenceServers>().servers, ::testing::ElementsAre(0, 1, 2));
  const uint64_t first = d.Last<action::FenceServers>().attempt;
  d.Step(event::DaemonDied{100});
  d.Step(event::DaemonDied{101});
  d.Join(pb::ROLE_PSSERVER, 200, 0);
  const auto gone = [](uint32_t server) {
    return CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, server));
  };
  EXPECT_EQ(d.Step(event::Fenced{first, {{0, gone(0)}, {1, gone(1)}, {2, gone(2)}}}), "");
  EXPECT_EQ(d.TickAfter(CoreDriver::kHeartbeat), "fence below 1 in generation 1");
  EXPECT_THAT(d.Last<action::FenceServers>().servers, ::testing::ElementsAre(2));
  const uint64_t second = d.Last<action::FenceServers>().attempt;
  // For longer than a server that stalls has time.
  for (int second = 0; second < 60; ++second) {
    d.now += CoreDriver::kHeartbeat;
    d.Beat(pb::ROLE_PSSERVER, 200, 0);
    d.Beat(pb::ROLE_PSSERVER, 102, 2);
  }
  EXPECT_EQ(d.Step(event::Fenced{second, {{0, gone(0)}}}), "cancelled OK") << "0 does not hang";
  d.Join(pb::ROLE_PSSERVER, 201, 1);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2");
}

// A server that was lost after it had been asked, and replaced before the answer.
TEST(CoreCancel, AServerThatIsLostWhileItIsAskedHasNothingToConfirm) {
  CoreDriver d(2);
  d.Step(event::EnableRecovery{RecoveryMode::kShard});
  d.Serve(0);
  d.Step(event::CancelEverything{});
  const uint64_t attempt = d.Last<action::FenceServers>().attempt;
  d.Step(event::DaemonDied{100});
  const CallError gone = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 0));
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{0, gone}}}), "cancelled OK");
}

// One that has taken a newer generation says nothing of another one that stalls.
TEST(CoreCancel, EachServerConfirmsForItself) {
  CoreDriver d(2);
  d.Serve(0);
  d.Step(event::CancelEverything{});
  const uint64_t attempt = d.Last<action::FenceServers>().attempt;
  const CallError stale = CallError::Of(Typed(pb::ERROR_STALE, pb::ROLE_PSSERVER, 0));
  const CallError stalls = CallError::Of(Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER, 1));
  EXPECT_EQ(d.Step(event::Fenced{attempt, {{0, stale}, {1, stalls}}}), "");
  EXPECT_EQ(d.TickAfter(CoreDriver::kHeartbeat), "fence below 1 in generation 1");
}

}  // namespace
}  // namespace mu
