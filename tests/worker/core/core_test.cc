// The worker's core as a whole: from which state, in which order. Transcripts of actions.
#include "worker/core/core.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error_kind.h"
#include "common/client/too_late.h"
#include "tests/testing/matchers.h"
#include "tests/worker/core/actions.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Lines = std::vector<std::string>;

constexpr uint64_t kJob = 7;
constexpr bool kPull = false, kPush = true;
const Fingerprint kFunction(11);

// A worker of epoch 1, generation 1, with one function. A run's call is 100 times its function,
// plus the number of runs of it so far.
class WorkerCoreTest : public ::testing::Test {
 protected:
  explicit WorkerCoreTest(bool registers = false) : core_({.registers = registers}) {}

  void SetUp() override {
    if (core_.HoldBack(now_, now_) > absl::ZeroDuration()) return;  // not registered yet
    Install();
  }
  void Install() {
    MU_ASSERT_OK(Configure(1));
    MU_ASSERT_OK(InstallFunction());
    testing::Take(&actions_);
  }

  pb::RequestContext Context(uint64_t generation = 0) const {
    pb::RequestContext context;
    context.set_job(kJob);
    context.set_epoch(epoch_);
    context.set_generation(generation);
    context.set_low_water(low_water_);
    return context;
  }
  // Servers are new in each generation, unless `incarnation` says that they stay.
  absl::Status Configure(uint64_t generation, uint64_t incarnation = 0) {
    WorkerRouting routing = {.version = ++version_, .generation = Generation(generation)};
    routing.servers.push_back({0, "a:1", incarnation == 0 ? generation : incarnation});
    return core_.Configure(Context(generation), std::move(routing), absl::OkStatus(), &actions_);
  }
  absl::Status InstallFunction() {
    MU_ASSIGN_OR_RETURN(const auto token, core_.BeginInstall(Context(), &actions_));
    return core_.FunctionInstalled(token, kFunction);
  }
  absl::Status Run(uint64_t function, uint64_t generation, uint32_t steps = 3) {
    WorkerCore::RunRequest request;
    request.run = {.call = CallId(100 * function + runs_[function]++),
                   .function = FunctionId(function),
                   .generation = Generation(generation),
                   .next_step = first_step_,
                   .steps = steps};
    request.function = kFunction;
    return core_.Run(now_, Context(generation), std::move(request), &actions_);
  }
  absl::Status Cancel(uint64_t below, uint64_t generation, uint64_t call = 9) {
    return core_.CancelRuns(Context(generation), FunctionId(below), CallId(call), &actions_);
  }
  // The generation in which a call is made, and its end.
  uint64_t Begin(bool push) {
    const auto context = core_.BeginCall(push);
    EXPECT_THAT(context, testing::IsOk());
    return context.ok() ? context->generation.value() : 0;
  }
  void StepEnded(const absl::Status& status = absl::OkStatus()) {
    core_.StepEnded(now_, status, &actions_);
  }
  Lines Take() { return testing::Take(&actions_); }

  WorkerCore core_;
  WorkerActions actions_;
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(100);
  uint64_t epoch_ = 1, low_water_ = 1, version_ = 0;
  uint32_t first_step_ = 0;
  std::map<uint64_t, uint64_t> runs_;
};

TEST_F(WorkerCoreTest, ARunFromItsFirstStepToItsEnd) {
  first_step_ = 1;
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_THAT(Take(), ElementsAre("run 100 step 1"));
  EXPECT_EQ(Begin(kPull), 1u);
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  EXPECT_EQ(Begin(kPush), 1u);
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "run 100 step 2"));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK")) << "the second was held";
  EXPECT_TRUE(core_.idle());
}

TEST_F(WorkerCoreTest, AnErrorEndsTheRunAfterTheResultsThatAreHeld) {
  MU_ASSERT_OK(Run(1, 1));
  StepEnded();
  StepEnded();
  Take();
  StepEnded(absl::OutOfRangeError("an id"));
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OUT_OF_RANGE"));
}

TEST_F(WorkerCoreTest, AStepWhoseGradientsWereTooLateRunsAgain) {
  const absl::Status too_late = WithTooLate(absl::AbortedError("late by 3"));
  MU_ASSERT_OK(Run(1, 1, /*steps=*/1));
  Take();
  StepEnded(too_late);
  EXPECT_THAT(Take(), ElementsAre("run 100 step 0")) << "and there is no result of it";
  StepEnded(too_late);
  EXPECT_THAT(Take(), ElementsAre("run 100 step 0"));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK"));
}

TEST_F(WorkerCoreTest, AStepOfARunThatWasStoppedDoesNotRunAgain) {
  const absl::Status too_late = WithTooLate(absl::AbortedError("late by 3"));
  MU_ASSERT_OK(Run(1, 1));
  MU_ASSERT_OK(Cancel(2, 1));
  Take();
  StepEnded(too_late);
  EXPECT_THAT(Take(), ElementsAre("end 100 CANCELLED", "cancelled 9"));
  MU_ASSERT_OK(Run(3, 1));
  core_.Drain(now_, absl::Seconds(5), &actions_);
  Take();
  StepEnded(too_late);
  EXPECT_THAT(Take(), ElementsAre("end 300 OK handed back")) << "another worker does it";
}

TEST_F(WorkerCoreTest, ACancelWhileARunExecutesAndARepeatOfANewerGenerationArrives) {
  MU_ASSERT_OK(Run(3, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  MU_ASSERT_OK(Run(4, 1));
  MU_ASSERT_OK(Cancel(5, 1));
  EXPECT_THAT(Take(), ElementsAre("run 300 step 0", "end 400 CANCELLED"))
      << "a push is not interrupted, and its run holds the answer up";
  EXPECT_THAT(Run(3, 1), testing::HasCode(absl::StatusCode::kCancelled)) << "it comes late";
  MU_ASSERT_OK(Configure(2));
  EXPECT_THAT(Take(), ElementsAre("use routing", "interrupt"));
  MU_ASSERT_OK(Run(3, 2));
  MU_ASSERT_OK(Cancel(5, 1, 10));
  EXPECT_THAT(Take(), ElementsAre("cancelled 10")) << "the repeat is not meant";
  EXPECT_TRUE(core_.RepeatCall(absl::CancelledError("interrupted")));
  EXPECT_THAT(core_.BeginCall(kPush), testing::HasCode(absl::StatusCode::kCancelled))
      << "nothing of it reaches the new servers";
  StepEnded(absl::CancelledError("interrupted"));
  EXPECT_THAT(Take(), ElementsAre("end 300 CANCELLED", "cancelled 9", "run 302 step 0"));
  EXPECT_EQ(Begin(kPush), 2u);
}

TEST_F(WorkerCoreTest, ACancelInterruptsAPull) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPull), 1u);
  MU_ASSERT_OK(Cancel(2, 1));
  EXPECT_THAT(Take(), ElementsAre("run 100 step 0", "interrupt"));
  EXPECT_FALSE(core_.RepeatCall(absl::CancelledError("interrupted")));
  StepEnded(absl::CancelledError("interrupted"));
  EXPECT_THAT(Take(), ElementsAre("end 100 CANCELLED", "cancelled 9"));
}

TEST_F(WorkerCoreTest, ADrainWithAStepRunningAndResultsHeld) {
  MU_ASSERT_OK(Run(1, 1, /*steps=*/9));
  MU_ASSERT_OK(Run(2, 1));
  StepEnded();
  StepEnded();
  EXPECT_EQ(Begin(kPull), 1u);
  Take();
  core_.Drain(now_, absl::Seconds(5), &actions_);
  EXPECT_THAT(Take(), ElementsAre("end 200 OK handed back")) << "the running step goes on";
  EXPECT_EQ(core_.alarm(), now_ + absl::Seconds(5));
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  EXPECT_EQ(Begin(kPush), 1u);
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK handed back"));
  EXPECT_TRUE(core_.idle());
  MU_ASSERT_OK(Run(3, 1));
  EXPECT_THAT(Take(), ElementsAre("end 300 OK handed back"));
}

TEST_F(WorkerCoreTest, ADrainGivesUpAPullWhenItsPatienceEnds) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPull), 1u);
  core_.Drain(now_, absl::Seconds(5), &actions_);
  EXPECT_THAT(Take(), ElementsAre("run 100 step 0"));
  now_ = core_.alarm();
  core_.Tick(now_, &actions_);
  EXPECT_THAT(Take(), ElementsAre("interrupt"));
  EXPECT_EQ(core_.alarm(), absl::InfiniteFuture());
  EXPECT_FALSE(core_.RepeatCall(absl::CancelledError("interrupted")));
  StepEnded(absl::CancelledError("interrupted"));
  EXPECT_THAT(Take(), ElementsAre("end 100 OK handed back")) << "the step has not been done";
}

TEST_F(WorkerCoreTest, ADrainWithoutPatienceSeesAPushThrough) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  core_.Drain(now_, absl::ZeroDuration(), &actions_);
  EXPECT_THAT(Take(), ElementsAre("run 100 step 0"));
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK handed back"));
}

// Its process ends, and its step computes on.
TEST_F(WorkerCoreTest, AStepThatOutlastsADrainIsHandedBack) {
  MU_ASSERT_OK(Run(1, 1, /*steps=*/9));
  StepEnded();
  StepEnded();
  Take();
  core_.Drain(now_, absl::Seconds(5), &actions_);
  core_.LeaveStep(&actions_);
  EXPECT_THAT(Take(), ElementsAre()) << "it has 5 seconds";
  now_ = core_.alarm();
  core_.Tick(now_, &actions_);
  EXPECT_THAT(Take(), ElementsAre());
  core_.LeaveStep(&actions_);
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK handed back"));
  EXPECT_TRUE(core_.left_step());
  core_.LeaveStep(&actions_);
  EXPECT_THAT(Take(), ElementsAre()) << "once";
  EXPECT_THAT(core_.BeginCall(kPush), testing::HasCode(absl::StatusCode::kCancelled))
      << "another worker does it";
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre());
  EXPECT_TRUE(core_.idle());
}

TEST_F(WorkerCoreTest, AStepThatPushesIsNotLeftToItself) {
  MU_ASSERT_OK(Run(1, 1, /*steps=*/9));
  EXPECT_EQ(Begin(kPush), 1u);
  Take();
  core_.Drain(now_, absl::ZeroDuration(), &actions_);
  EXPECT_FALSE(core_.may_leave_step());
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  EXPECT_FALSE(core_.may_leave_step()) << "its result comes now";
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 OK handed back"));
}

TEST_F(WorkerCoreTest, ANewEpochWhileARunPushes) {
  MU_ASSERT_OK(Run(1, 1));
  MU_ASSERT_OK(Run(2, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  Take();
  epoch_ = 2;
  EXPECT_EQ(KindOf(Run(1, 1)), pb::ERROR_NOT_INSTALLED) << "the new epoch has installed nothing";
  EXPECT_THAT(Take(), ElementsAre("end 200 ERROR_STALE", "interrupt", "forget"))
      << "the servers that it pushes to may be gone";
  MU_ASSERT_OK(Configure(2));
  EXPECT_THAT(Take(), ElementsAre("use routing"));
  EXPECT_TRUE(core_.RepeatCall(absl::CancelledError("interrupted")));
  EXPECT_EQ(KindOf(core_.BeginCall(kPush).status()), pb::ERROR_STALE);
  StepEnded(absl::CancelledError("interrupted"));
  EXPECT_THAT(Take(), ElementsAre("end 100 ERROR_STALE"));
  epoch_ = 1;
  EXPECT_EQ(KindOf(Run(3, 2)), pb::ERROR_STALE);
  const auto detail = DetailOf(Run(3, 2));
  EXPECT_EQ(detail->epoch(), 2u) << "its coordinator learns who took over";
}

TEST_F(WorkerCoreTest, APushThatEndsAfterANewEpochCountsForNobody) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  epoch_ = 2;
  MU_ASSERT_OK(Cancel(1, 1));
  Take();
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus()));
  StepEnded();
  EXPECT_THAT(Take(), ElementsAre("results of 100", "end 100 ERROR_STALE"));
}

TEST_F(WorkerCoreTest, NothingIsInstalledAfterANewEpoch) {
  MU_ASSERT_OK_AND_ASSIGN(const auto token, core_.BeginInstall(Context(), &actions_));
  epoch_ = 2;
  MU_ASSERT_OK(Configure(2));
  EXPECT_THAT(Take(), ElementsAre("forget", "use routing"));
  EXPECT_EQ(KindOf(core_.FunctionInstalled(token, kFunction)), pb::ERROR_STALE)
      << "it was compiled for the former epoch";
  EXPECT_EQ(KindOf(Run(1, 2)), pb::ERROR_NOT_INSTALLED);
  EXPECT_EQ(KindOf(core_.Look(Context(), 1)), pb::ERROR_NOT_INSTALLED);
  MU_ASSERT_OK(InstallFunction());
  MU_EXPECT_OK(Run(1, 2));
  EXPECT_THAT(Take(), ElementsAre("run 101 step 0"));
}

TEST_F(WorkerCoreTest, ADatasetMustBeThereAsWell) {
  WorkerCore::RunRequest reads;
  reads.run = {.call = CallId(1), .function = FunctionId(1), .steps = 1};
  reads.function = kFunction;
  reads.dataset = 4;
  EXPECT_EQ(KindOf(core_.Run(now_, Context(1), reads, &actions_)), pb::ERROR_NOT_INSTALLED);
  MU_ASSERT_OK_AND_ASSIGN(const auto token, core_.BeginInstall(Context(), &actions_));
  MU_ASSERT_OK(core_.DatasetInstalled(token, 4));
  MU_EXPECT_OK(core_.Look(Context(), 4));
  MU_EXPECT_OK(core_.Run(now_, Context(1), reads, &actions_));
  reads.inputs = absl::InvalidArgumentError("an argument");
  EXPECT_THAT(core_.Run(now_, Context(1), reads, &actions_),
              testing::HasCode(absl::StatusCode::kInvalidArgument));
}

TEST_F(WorkerCoreTest, ARoutingUpdateDuringAPush) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  Take();
  low_water_ = 1;
  MU_ASSERT_OK(Configure(1, /*incarnation=*/1));
  EXPECT_THAT(Take(), ElementsAre("use routing")) << "the servers are where they were";
  MU_ASSERT_OK(Configure(2, /*incarnation=*/2));
  EXPECT_THAT(Take(), ElementsAre("use routing", "interrupt"));
  EXPECT_TRUE(core_.RepeatCall(absl::CancelledError("interrupted")));
  EXPECT_EQ(Begin(kPush), 1u) << "in the generation of the run: the servers may refuse it";
  EXPECT_FALSE(core_.RepeatCall(absl::FailedPreconditionError("stale")));
  StepEnded(WithKind(absl::FailedPreconditionError("stale"), pb::ERROR_STALE, pb::ROLE_PSSERVER));
  EXPECT_THAT(Take(), ElementsAre("end 100 ERROR_STALE"));
}

// Its coordinator took the worker for lost, and has repeated or cancelled its runs since. Also of
// the first generation that a coordinator gives out, which is 1.
TEST_F(WorkerCoreTest, ARunThatWaitsWhileServersAreRestoredPushesNothingIntoTheirNewState) {
  MU_ASSERT_OK(Run(1, 1));
  MU_ASSERT_OK(Run(2, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  MU_ASSERT_OK(Configure(2));
  Take();
  EXPECT_TRUE(core_.RepeatCall(absl::CancelledError("interrupted")));
  EXPECT_EQ(Begin(kPush), 1u);
  EXPECT_FALSE(core_.RepeatCall(absl::FailedPreconditionError("stale")));
  StepEnded(WithKind(absl::FailedPreconditionError("stale"), pb::ERROR_STALE, pb::ROLE_PSSERVER));
  EXPECT_THAT(Take(), ElementsAre("end 100 ERROR_STALE", "run 200 step 0"));
  EXPECT_EQ(Begin(kPull), 1u) << "the servers refuse it";
  EXPECT_EQ(KindOf(Run(3, 1)), pb::ERROR_STALE) << "as is one that comes late";
}

TEST_F(WorkerCoreTest, APushThatEndsAsTheServersMoveIsNotRepeated) {
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPush), 1u);
  MU_ASSERT_OK(Configure(2));
  EXPECT_FALSE(core_.RepeatCall(absl::OkStatus())) << "it was acknowledged";
  EXPECT_EQ(Begin(kPush), 1u);
  EXPECT_FALSE(core_.RepeatCall(absl::CancelledError("not by the core")))
      << "they moved before it began";
}

TEST_F(WorkerCoreTest, AnOlderRoutingAndOneThatIsNotSaneChangeNothing) {
  const WorkerRouting old = {.version = 1, .generation = Generation(1)};
  const WorkerRouting bad = {.version = 2, .generation = Generation(2)};
  const absl::Status insane = absl::InvalidArgumentError("placement on unknown servers");
  MU_EXPECT_OK(core_.Configure(Context(), old, insane, &actions_)) << "it is not looked at";
  EXPECT_EQ(core_.Configure(Context(), bad, insane, &actions_), insane);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(core_.generation(), Generation(1));
}

TEST_F(WorkerCoreTest, PushesCarryTheNewestLowWaterMark) {
  MU_ASSERT_OK(Run(4, 1));
  low_water_ = 3;
  MU_ASSERT_OK(Cancel(1, 1));
  const auto context = core_.BeginCall(kPush);
  ASSERT_THAT(context, testing::IsOk());
  EXPECT_EQ(context->low_water, FunctionId(3));
}

TEST_F(WorkerCoreTest, ShutdownEndsEverythingUnavailable) {
  MU_ASSERT_OK(Run(1, 1));
  MU_ASSERT_OK(Run(2, 1));
  EXPECT_EQ(Begin(kPull), 1u);
  Take();
  core_.Shutdown(&actions_);
  EXPECT_THAT(Take(), ElementsAre("end 200 UNAVAILABLE", "interrupt"));
  EXPECT_FALSE(core_.RepeatCall(absl::CancelledError("interrupted")));
  StepEnded(absl::CancelledError("interrupted"));
  EXPECT_THAT(Take(), ElementsAre("end 100 UNAVAILABLE"));
  EXPECT_EQ(core_.active(), 0u);
  EXPECT_THAT(Run(3, 1), testing::HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(WorkerCoreTest, ARunWhoseCallerWasGoneBeforeItBeganDoesNothing) {
  MU_ASSERT_OK(Run(1, 1, 1));
  MU_ASSERT_OK(Run(2, 1));
  MU_ASSERT_OK(Run(3, 1));
  core_.CallerGone(CallId(200), &actions_);
  Take();
  StepEnded();
  EXPECT_THAT(Take(),
              ElementsAre("results of 100", "end 100 OK", "end 200 CANCELLED", "run 300 step 0"));
}

class RegisteringWorkerCoreTest : public WorkerCoreTest {
 protected:
  RegisteringWorkerCoreTest() : WorkerCoreTest(/*registers=*/true) {}
};

TEST_F(RegisteringWorkerCoreTest, RequestsWaitForTheRegistration) {
  const absl::Duration wait = core_.HoldBack(now_, now_);
  EXPECT_GT(wait, absl::ZeroDuration());
  EXPECT_EQ(core_.HoldBack(now_ + wait, now_), absl::ZeroDuration()) << "not forever";
  EXPECT_EQ(KindOf(Run(1, 1)), pb::ERROR_MACHINE) << "a run does not wait";
  MU_ASSERT_OK(core_.Registered(Context(), &actions_));
  EXPECT_EQ(core_.HoldBack(now_, now_), absl::ZeroDuration());
  Install();
  MU_EXPECT_OK(Run(1, 1));
}

TEST_F(RegisteringWorkerCoreTest, NothingWaitsForOneThatLeaves) {
  core_.Drain(now_, absl::Seconds(1), &actions_);
  EXPECT_EQ(core_.HoldBack(now_, now_), absl::ZeroDuration());
  EXPECT_THAT(Configure(1), testing::HasCode(absl::StatusCode::kUnavailable));
}

TEST_F(RegisteringWorkerCoreTest, ARegistrationWithANewerCoordinatorEndsWhatRuns) {
  MU_ASSERT_OK(core_.Registered(Context(), &actions_));
  Install();
  MU_ASSERT_OK(Run(1, 1));
  EXPECT_EQ(Begin(kPull), 1u);
  Take();
  epoch_ = 2;
  MU_ASSERT_OK(core_.Registered(Context(), &actions_));
  EXPECT_THAT(Take(), ElementsAre("interrupt", "forget"));
}

}  // namespace
}  // namespace mu
