// Groups of functions beside training, and views of checkpoints that they read.
#include <algorithm>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::HasCode;
using testing::MachineFault;
using testing::Typed;

constexpr GroupId kEval{1}, kOther{2};
constexpr ViewId kView{9}, kNew{10};
constexpr uint64_t kFirst = kFirstInGroups.value();

class Driver : public CoreDriver {
 public:
  using CoreDriver::CoreDriver;
  // With ids of groups counted from "e0".
  std::string Short(std::string text) {
    for (uint64_t i = 0; i < 20; ++i) {
      const std::string id = absl::StrCat(kFirst + i);
      for (size_t at; (at = text.find(id)) != std::string::npos;)
        text.replace(at, id.size(), absl::StrCat("e", i));
    }
    return text;
  }
  std::string Eval(GroupId group = kEval, uint32_t steps = 1) {
    FunctionWork work;
    work.name = "eval";
    work.fingerprint = Fingerprint(6);
    work.steps = steps;
    work.group = group;
    return Short(Step(event::Schedule{std::move(work)}));
  }
  std::string Make(GroupId group = kEval, ViewId view = ViewId(), std::vector<ViewId> same = {}) {
    return Step(event::GroupMade{group, view, std::move(same)});
  }
  // Of a function with one step.
  std::string Finished(uint64_t function) {
    Result(function, 0);
    return Short(Ended(function));
  }
  std::string Answer(absl::Status status = absl::OkStatus()) {
    for (const Action& action : Actions(asked)) {
      if (const auto* load = std::get_if<action::LoadView>(&action)) attempt = load->attempt;
      if (const auto* drop = std::get_if<action::DropView>(&action)) attempt = drop->attempt;
    }
    return Short(Step(event::ViewAnswered{attempt, CallError::Of(std::move(status))}));
  }
  std::string Keep(std::string text) {
    asked = last;
    return Short(std::move(text));
  }
  Actions asked;
  uint64_t attempt = 0;
};

TEST(CoreGroups, RunBesideTrainingInTurns) {
  Driver d;
  d.Serve(1);
  d.Make();
  for (int i = 0; i < 4; ++i) d.Schedule();  // 1 and 2 run
  for (int i = 0; i < 3; ++i) d.Eval();
  EXPECT_EQ(d.Finished(1), "finish 1 OK; start e0 on 0 from 0") << "training started last";
  EXPECT_EQ(d.Finished(2), "finish 2 OK; start 3 on 0 from 0");
  EXPECT_EQ(d.Finished(kFirst), "finish e0 OK; start e1 on 0 from 0");
  EXPECT_EQ(d.Finished(3), "finish 3 OK; start 4 on 0 from 0");
  EXPECT_EQ(d.Finished(4), "finish 4 OK; start e2 on 0 from 0");
  EXPECT_TRUE(d.core.done()) << "training's join waits for no group";
  EXPECT_FALSE(d.core.done(kEval));
  EXPECT_TRUE(d.core.quiet()) << "nor does who restores other values, before the load itself";
  d.Finished(kFirst + 1);
  EXPECT_FALSE(d.core.done(kEval));
  d.Finished(kFirst + 2);
  EXPECT_TRUE(d.core.done(kEval));
}

TEST(CoreGroups, ADefinitionThatWorkersRefuseEndsWhoUsesIt) {
  const auto refused = [](bool training, bool group) {
    Driver d;
    d.Serve(1);
    d.Make();
    d.Make(kOther);
    if (training) d.Schedule();
    if (group) d.Eval();
    const Fingerprint definition =
        group ? Fingerprint(6) : d.core.queue().Find(FunctionId(1))->work.fingerprint;
    d.Define(definition.value());
    d.Installed(0, 10, testing::FoundWrong());
    return std::pair(d.core.cancelling(), d.core.done(kEval));
  };
  EXPECT_EQ(refused(true, true), std::pair(false, true)) << "only the group uses it";
  EXPECT_EQ(refused(true, false), std::pair(true, true)) << "training does";
}

TEST(CoreGroups, AnErrorEndsItsGroupAndNothingElse) {
  Driver d;
  d.Serve(2);
  d.Make(kEval);
  d.Make(kOther);
  d.Schedule(2);
  d.Eval(kEval);
  d.Eval(kEval);
  d.Eval(kOther);
  d.Eval(kEval);  // queued
  EXPECT_EQ(d.Short(d.Ended(kFirst, Typed(pb::ERROR_USER))),
            "finish e0 FAILED_PRECONDITION; finish e1 CANCELLED; stop run 3 on 0; "
            "finish e3 CANCELLED; group 1 failed FAILED_PRECONDITION");
  EXPECT_FALSE(d.core.cancelling());
  EXPECT_TRUE(d.core.done(kEval));
  EXPECT_FALSE(d.core.done(kOther));
  EXPECT_EQ(d.Result(1, 0), "deliver 1");
  EXPECT_EQ(d.Result(kFirst + 1, 0), "") << "its run is no longer current";
  EXPECT_EQ(d.Finished(kFirst + 2), "finish e2 OK");
  EXPECT_EQ(d.Eval(kEval), "scheduled e4; start e4 on 1 from 0") << "the group can be used again";
}

TEST(CoreGroups, AnErrorOfTrainingLeavesThem) {
  Driver d;
  d.Serve(1);
  d.Make();
  d.Schedule();
  d.Eval();
  d.Eval();
  EXPECT_EQ(d.Ended(1, Typed(pb::ERROR_USER)),
            "finish 1 FAILED_PRECONDITION; cancel below 2 in generation 1 on 1; " +
                absl::StrCat("start ", kFirst + 1, " on 0 from 0"));
  EXPECT_TRUE(d.core.cancelling());
  EXPECT_EQ(d.Schedule(), "scheduled 2") << "training waits for the fence";
  EXPECT_EQ(d.Finished(kFirst), "finish e0 OK");
  d.Step(event::WorkerCancelled{WorkerId(0), Incarnation(10)});
  EXPECT_EQ(d.Step(event::Fenced{d.Last<action::FenceServers>().attempt}),
            "cancelled FAILED_PRECONDITION; start 2 on 0 from 0");
  EXPECT_EQ(d.Finished(kFirst + 1), "finish e1 OK");
}

TEST(CoreGroups, AreCancelledApart) {
  Driver d;
  d.Serve(1);
  d.Make();
  d.Schedule();
  d.Eval();
  EXPECT_EQ(d.Short(d.Step(event::CancelGroup{kEval})), "finish e0 CANCELLED; stop run 2 on 0");
  EXPECT_TRUE(d.core.done(kEval)) << "nobody waits for the worker, which is at its step";
  EXPECT_EQ(d.Step(event::CancelGroup{kEval}), "");
  EXPECT_EQ(d.Finished(kFirst), "") << "nobody gets its result";
  EXPECT_EQ(d.Finished(1), "finish 1 OK");
  EXPECT_EQ(d.Eval(), "scheduled e1; start e1 on 0 from 0") << "the group can be used again";
}

TEST(CoreGroups, OfALostWorkerRunAgain) {
  Driver d;
  d.Serve(2);
  d.Make();
  d.Eval(kEval, 2);
  EXPECT_EQ(d.Result(kFirst, 0), absl::StrCat("deliver ", kFirst));
  EXPECT_EQ(d.Short(d.Step(event::DaemonDied{10})), "worker 0 died; start e0 on 1 from 1");
}

TEST(CoreGroups, AreInNoPositionAndHoldBackNoMark) {
  Driver d;
  d.Serve(1);
  d.Make();
  d.Eval();
  EXPECT_FALSE(d.core.queue().scheduled()) << "the state is still the initial one";
  d.Schedule();
  d.Finished(1);
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kSave}), "save 1");
  EXPECT_TRUE(d.core.PositionAfterCuts().functions.unfinished.empty());
  EXPECT_EQ(d.core.PositionAfterCuts().functions.next_id, FunctionId(2));
  d.Step(event::Saved{CheckpointNumber(1)});
  d.Step(event::ManifestWritten{CheckpointNumber(1)});
  EXPECT_EQ(d.core.low_water(), FunctionId(1)) << "the initial values can still be gone back to";
  d.Want(3, {.kind = ServerTask::Kind::kSave});
  d.Step(event::Saved{CheckpointNumber(2)});
  d.Step(event::ManifestWritten{CheckpointNumber(2)});
  EXPECT_EQ(d.core.low_water(), FunctionId(2)) << "and not the evaluation's";
}

TEST(CoreGroups, MustOnlyRead) {
  Driver d;
  FunctionWork work;
  work.group = kEval;
  const auto refused = HasCode(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(d.core.MaySchedule(work).refusal, refused) << "no such group";
  d.Make();
  EXPECT_TRUE(d.core.MaySchedule(work).granted());
  work.trains = true;
  EXPECT_THAT(d.core.MaySchedule(work).refusal, refused);
}

TEST(CoreGroups, OneThatEndsWorkersFailsAlone) {
  Driver d;
  d.Serve(1);
  d.Make();
  d.Eval();
  d.Schedule();
  std::string text;
  for (uint32_t loss = 0; loss < 10; ++loss) {
    text = d.Short(d.Step(event::DaemonDied{10 + loss}));
    d.Join(pb::ROLE_WORKER, 11 + loss, 0);
    d.Installed(0, 11 + loss);
  }
  EXPECT_EQ(text, "worker 0 died; finish e0 RESOURCE_EXHAUSTED; group 1 failed RESOURCE_EXHAUSTED");
  EXPECT_FALSE(d.core.cancelling());
  EXPECT_EQ(d.Finished(1), "finish 1 OK");
}

TEST(CoreGroups, EndWithEverything) {
  Driver d(1);
  d.Serve(1, /*recovery=*/false);
  d.Make();
  d.Eval();
  EXPECT_EQ(d.Short(d.Step(event::Fail{absl::UnavailableError("over")})),
            "interrupt; finish e0 UNAVAILABLE; stop run 1 on 0; end UNAVAILABLE");
  EXPECT_TRUE(d.core.done(kEval));
}

TEST(CoreGroups, WaitForServersThatAreReset) {
  Driver d;
  d.Serve(1, /*recovery=*/false);
  d.Make();
  d.Want(2, {.kind = ServerTask::Kind::kLoad});
  d.Step(event::Loaded{.attempt = testing::Attempt(d),
                       .error = CallError::Of(absl::DataLossError("torn"))});
  const uint64_t resetting = testing::Attempt(d);
  EXPECT_EQ(d.Eval(), "scheduled e0");
  EXPECT_EQ(d.Step(event::Configured{resetting}), "use routing");
  EXPECT_EQ(d.Routing(2, 3), "install routing on 0");
  EXPECT_EQ(d.Short(d.Installed(0, 10)), "start e0 on 0 from 0");
}

TEST(CoreGroups, DoNotEndARoundThatIsOpen) {
  Driver d;
  d.Step(event::SetRounds{{.replicas = 2, .backups = 0}});
  d.Serve(2);
  d.Make();
  d.Schedule();
  d.Result(1, 0);
  d.Ended(1);
  EXPECT_EQ(d.Eval(), "scheduled e0; start e0 on 0 from 0");
  EXPECT_EQ(d.Finished(kFirst), "finish e0 OK");
  d.Step(event::NothingMore{});
  EXPECT_EQ(d.Last<action::CommitRound>().set.round, 1u) << "it waits for one more of training";
}

TEST(CoreGroups, DoNotKeepABackupFromStarting) {
  Driver d;
  d.Step(event::SetRounds{{.replicas = 1, .backups = 1}});
  d.Serve(2);
  d.Make();
  d.Eval();  // one of each on its worker
  d.Schedule();
  EXPECT_EQ(d.Schedule(), "scheduled 2; start 2 on 0 from 0") << "beside the group's";
}

TEST(CoreGroups, SchedulingInOneKeepsARoundFromWaitingForMore) {
  Driver d;
  d.Step(event::SetRounds{{.replicas = 2, .backups = 0}});
  d.Serve(2);
  d.Make();
  d.Schedule();
  d.Step(event::NothingMore{});
  d.Eval();
  EXPECT_THAT(d.Result(1, 0), ::testing::HasSubstr("commit 1"));
}

TEST(CoreViews, AreLoadedBeforeTheirFunctionsStart) {
  Driver d(2);
  d.Serve(1);
  EXPECT_EQ(d.Keep(d.Make(kEval, kView)), "load view 9 in 1");
  EXPECT_EQ(d.Eval(), "scheduled e0");
  EXPECT_EQ(d.Schedule(), "scheduled 1; start 1 on 0 from 0") << "training does not wait";
  d.Make(kOther);
  EXPECT_EQ(d.Eval(kOther), "scheduled e1; start e1 on 0 from 0") << "nor do current values";
  d.Finished(1);
  EXPECT_EQ(d.Answer(), "start e0 on 0 from 0");
}

TEST(CoreViews, AreLoadedAgainWhenAServerWasLost) {
  Driver d(2);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Answer();
  d.Eval();
  EXPECT_EQ(d.Step(event::DaemonDied{101}), "server 1 died; interrupt; pause; stop run 1 on 0");
  d.Ended(kFirst, absl::CancelledError("stopped"));
  d.Join(pb::ROLE_PSSERVER, 201, 1);
  EXPECT_EQ(d.Keep(d.Restored(2)), "use routing; serve in 2; load view 9 in 2");
  EXPECT_EQ(d.Routing(2, 2), "install routing on 0");
  EXPECT_EQ(d.Installed(0, 10), "");
  EXPECT_EQ(d.Answer(), "start e0 on 0 from 0");
}

// Of a checkpoint's values into the state.
TEST(CoreViews, ALoadOfTheStateWaitsForWhoReadsThemAndTheyAreLoadedAgain) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Eval();
  EXPECT_EQ(d.Want(2, {.kind = ServerTask::Kind::kLoad}), "");
  FunctionWork eval;
  eval.group = kEval;
  EXPECT_TRUE(d.core.MaySchedule(eval).wait);
  EXPECT_EQ(d.Answer(), "start e0 on 0 from 0") << "what waits for its view must come to its end";
  EXPECT_EQ(d.Finished(kFirst), "finish e0 OK; load for 2 in 2");
  EXPECT_EQ(d.Keep(d.Step(event::Loaded{.attempt = testing::Attempt(d), .updates = {0}})),
            "use routing; done 2 OK; load view 9 in 2");
  EXPECT_TRUE(d.core.MaySchedule(eval).granted());
  EXPECT_EQ(d.Eval(), "scheduled e1");
  d.Routing(2, 2);
  EXPECT_EQ(d.Installed(0, 10), "");
  EXPECT_EQ(d.Answer(), "start e1 on 0 from 0");
}

TEST(CoreViews, ALoadThatAServerWasLostInIsNotWaitedFor) {
  Driver d(2);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Step(event::DaemonDied{101});
  EXPECT_EQ(d.Answer(), "") << "of before";
  d.Join(pb::ROLE_PSSERVER, 201, 1);
  EXPECT_EQ(d.Restored(2), "use routing; serve in 2; load view 9 in 2");
}

TEST(CoreViews, OnesThatAServerLacksAreLoadedAgain) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Answer();
  d.Eval();
  EXPECT_EQ(d.Keep(d.Ended(kFirst, Typed(pb::ERROR_NOT_INSTALLED, pb::ROLE_PSSERVER))),
            "load view 9 in 1");
  EXPECT_EQ(d.Answer(), "start e0 on 0 from 0");
}

TEST(CoreViews, OneThatCannotBeLoadedIsTheErrorOfItsGroup) {
  Driver d(1);
  d.Serve(1);
  d.Schedule();
  d.Keep(d.Make(kEval, kView));
  d.Eval();
  EXPECT_EQ(d.Keep(d.Answer(absl::DataLossError("damaged"))),
            "finish e0 CANCELLED; group 1 failed DATA_LOSS; drop view 9");
  EXPECT_FALSE(d.core.cancelling());
  FunctionWork work;
  work.group = kEval;
  EXPECT_THAT(d.core.MaySchedule(work).refusal, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_EQ(d.Answer(), "view 9 unused");
}

// Servers send DATA_LOSS as the fault of a machine, which is tried again otherwise.
TEST(CoreViews, OneThatIsDamagedIsNotTriedAgain) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Eval();
  const absl::Status damaged =
      WithKind(absl::DataLossError("damaged"), pb::ERROR_MACHINE, pb::ROLE_PSSERVER);
  ASSERT_TRUE(CallError::Of(damaged).passing()) << "by its kind";
  EXPECT_EQ(d.Keep(d.Answer(damaged)),
            "finish e0 CANCELLED; group 1 failed DATA_LOSS; drop view 9");
  EXPECT_EQ(d.Answer(), "view 9 unused");
  EXPECT_EQ(d.TickAfter(absl::Seconds(1)), "");
}

TEST(CoreViews, AFaultOfAMachineIsTriedAgain) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  const absl::Status passing = Typed(pb::ERROR_MACHINE, pb::ROLE_PSSERVER);
  for (int i = 1; i < 20; ++i) {
    ASSERT_EQ(d.Answer(passing), "") << i;
    ASSERT_EQ(d.Keep(d.TickAfterFailures(i)), "load view 9 in 1") << i;
  }
  EXPECT_EQ(d.Answer(passing), "group 1 failed FAILED_PRECONDITION; drop view 9");
}

TEST(CoreViews, AreDroppedWithTheirLastGroup) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Answer();
  EXPECT_EQ(d.Make(kOther, kNew, {kView}), "view 10 unused") << "they share the first one's";
  d.Eval(kOther);
  EXPECT_EQ(d.Step(event::GroupDropped{kEval}), "");
  EXPECT_EQ(d.Keep(d.Step(event::GroupDropped{kOther})),
            "finish e0 CANCELLED; stop run 1 on 0; drop view 9");
  EXPECT_EQ(d.Answer(), "view 9 unused");
}

TEST(CoreViews, OneThatTwoGroupsReadIsLoadedOnceAndIsTheErrorOfBoth) {
  Driver d(1);
  d.Serve(1);
  EXPECT_EQ(d.Keep(d.Make(kEval, kView)), "load view 9 in 1");
  EXPECT_EQ(d.Make(kOther, kNew, {kView}), "view 10 unused") << "the other is being loaded";
  d.Eval(kEval);
  d.Eval(kOther);
  EXPECT_EQ(d.Keep(d.Answer(absl::DataLossError("damaged"))),
            "finish e0 CANCELLED; group 1 failed DATA_LOSS; "
            "finish e1 CANCELLED; group 2 failed DATA_LOSS; drop view 9");
  EXPECT_EQ(d.Make(GroupId(3), ViewId(11), {kView}), "") << "a third group needs another one";
  EXPECT_EQ(d.Answer(), "view 9 unused; load view 11 in 1");
}

TEST(CoreViews, OneThatIsBeingDroppedIsNotShared) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  d.Answer();
  EXPECT_EQ(d.Keep(d.Step(event::GroupDropped{kEval})), "drop view 9");
  EXPECT_EQ(d.Make(kOther, kNew, {kView}), "");
  EXPECT_EQ(d.Keep(d.Answer()), "view 9 unused; load view 10 in 1");
  EXPECT_EQ(d.Make(GroupId(3), ViewId(11), {kNew}), "view 11 unused");
  EXPECT_EQ(d.Step(event::GroupDropped{kOther}), "");
  d.Eval(GroupId(3));
  EXPECT_EQ(d.core.queue().Find(kFirstInGroups)->work.view, kNew);
}

TEST(CoreViews, OneThatIsDroppedWhileItIsLoadedIsDroppedThen) {
  Driver d(1);
  d.Serve(1);
  d.Keep(d.Make(kEval, kView));
  EXPECT_EQ(d.Step(event::GroupDropped{kEval}), "");
  EXPECT_EQ(d.Keep(d.Answer()), "drop view 9");
  EXPECT_EQ(d.Answer(), "view 9 unused");
}

TEST(CoreViews, OneThatNoServerHasSeenIsUnusedAtOnce) {
  Driver d(1);
  EXPECT_EQ(d.Make(kEval, kView), "") << "there is no server yet";
  EXPECT_EQ(d.Step(event::GroupDropped{kEval}), "view 9 unused");
}

}  // namespace
}  // namespace mu
