// Data whose plans come from outside: what waits for them and what does not.
#include "tests/coordinator/core/core_driver.h"
#include "tests/coordinator/core/planned_leases.h"

namespace mu {
namespace {

using testing::CoreDriver;
using testing::PlanOf;

constexpr uint64_t kData = 3;

// Two batches an epoch.
DataLayout Data(uint32_t epochs, pb::Visitation visitation = pb::VISITATION_EXACTLY_ONCE) {
  pb::DatasetProto dataset;
  dataset.set_id(kData);
  dataset.set_name("d");
  dataset.set_batch_size(10);
  dataset.set_block_records(10);
  dataset.set_epochs(epochs);
  dataset.set_visitation(visitation);
  return testing::LayoutOf(std::move(dataset), {20});
}

std::string Add(CoreDriver& d, const DataLayout& data) {
  return d.Step(event::DatasetAdded{data, PlanOf(data, 0)});
}

std::string Schedule(CoreDriver& d, uint32_t steps, uint64_t dataset = kData) {
  FunctionWork work;
  work.fingerprint = Fingerprint(5);
  work.steps = steps;
  work.dataset = dataset;
  work.trains = work.updates = true;
  return d.Step(event::Schedule{std::move(work)});
}

std::string Made(CoreDriver& d, const action::MakePlan& asked) {
  return d.Step(event::PlanMade{kData, PlanOf(asked.data, asked.epoch)});
}

TEST(CoreData, AFunctionWaitsForThePlanAndNothingOvertakesIt) {
  CoreDriver d;
  d.Serve(2);
  Add(d, Data(/*epochs=*/2));
  EXPECT_EQ(Schedule(d, 3), "scheduled 1; plan epoch 1");
  const auto asked = d.Last<action::MakePlan>();
  EXPECT_EQ(Schedule(d, 1, 0), "scheduled 2");
  EXPECT_EQ(d.core.queue().UnboundSteps(kData), 3u);
  EXPECT_EQ(Made(d, asked), "start 1 on 0 from 0; start 2 on 1 from 0");
  EXPECT_EQ(d.core.queue().Find(FunctionId(1))->steps, 3u);
}

TEST(CoreData, TheNextEpochIsPlannedWhileTheLastBatchesAreRead) {
  CoreDriver d;
  d.Serve(1);
  Add(d, Data(/*epochs=*/2));
  EXPECT_EQ(Schedule(d, 2), "scheduled 1; plan epoch 1; start 1 on 0 from 0");
  EXPECT_EQ(Made(d, d.Last<action::MakePlan>()), "");
  EXPECT_EQ(Schedule(d, 2), "scheduled 2; start 2 on 0 from 0");
  EXPECT_EQ(d.core.queue().Find(FunctionId(2))->batches[0].lease->epoch(), 1u);
}

// What a caller asks for wins over what is being planned.
TEST(CoreData, AnEpochThatIsStartedDoesNotWaitForAnotherOnesPlan) {
  CoreDriver d;
  d.Serve(1);
  Add(d, Data(/*epochs=*/0));
  Schedule(d, 2);
  const action::MakePlan late = d.Last<action::MakePlan>();
  ASSERT_EQ(late.epoch, 1u);
  d.Step(event::EpochStarted{kData, 7, PlanOf(Data(0), 7)});
  d.Step(event::PlanMade{kData, PlanOf(late.data, late.epoch)});
  EXPECT_EQ(Schedule(d, 2), "scheduled 2; plan epoch 8; start 2 on 0 from 0");
  EXPECT_EQ(d.core.queue().Find(FunctionId(2))->batches[0].lease->epoch(), 7u);
}

TEST(CoreData, WhoReadsByItselfWaitsForNoPlan) {
  CoreDriver d;
  d.Serve(2);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  EXPECT_EQ(Schedule(d, 2), "scheduled 1; start 1 on 0 from 0");
  EXPECT_EQ(Schedule(d, 2), "scheduled 2; start 2 on 1 from 0");
  EXPECT_TRUE(d.core.DataPositions().empty()) << "no checkpoint holds where each worker is";
}

// One that has no data left cancels everything: nothing of what could start beside it is started.
TEST(CoreData, NothingStartsBesideOneThatIsOutOfData) {
  CoreDriver d;
  d.Serve(1);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  Schedule(d, 1);
  Schedule(d, 1);  // the worker has two functions at a time, and these are all of its data
  EXPECT_EQ(Schedule(d, 1), "scheduled 3");
  EXPECT_EQ(Schedule(d, 1, 0), "scheduled 4");
  d.Result(1, 0);
  const std::string wanted = d.Ended(1);
  EXPECT_EQ(wanted.find("start"), std::string::npos) << wanted;
  EXPECT_NE(wanted.find("finish 3 OUT_OF_RANGE"), std::string::npos) << wanted;
  EXPECT_NE(wanted.find("cancel below 5"), std::string::npos) << wanted;
}

// A group fails as a whole, and training does not notice.
TEST(CoreData, AGroupsFunctionThatIsOutOfDataFailsItsGroup) {
  CoreDriver d;
  d.Serve(1);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  d.Step(event::GroupMade{GroupId(1), ViewId()});
  const auto eval = [&](uint64_t dataset) {
    FunctionWork work;
    work.fingerprint = Fingerprint(6);
    work.steps = 1;
    work.dataset = dataset;
    work.group = GroupId(1);
    return d.Step(event::Schedule{std::move(work)});
  };
  for (int i = 0; i < 3; ++i) eval(kData);
  eval(0);
  d.Schedule();
  const uint64_t first = kFirstInGroups.value();
  d.Result(first, 0);
  EXPECT_NE(d.Ended(first).find("start 1 "), std::string::npos) << "training has its turn";
  d.Result(first + 1, 0);
  const std::string wanted = d.Ended(first + 1);
  EXPECT_NE(wanted.find(absl::StrCat("finish ", first + 2, " OUT_OF_RANGE")), std::string::npos)
      << wanted;
  EXPECT_NE(wanted.find("group 1 failed OUT_OF_RANGE"), std::string::npos) << wanted;
  EXPECT_NE(wanted.find(absl::StrCat("finish ", first + 3, " CANCELLED")), std::string::npos)
      << wanted;
  EXPECT_EQ(wanted.find("cancel below"), std::string::npos) << wanted;
  EXPECT_TRUE(d.core.done(GroupId(1)));
  EXPECT_FALSE(d.core.done());
}

// A call of a group's function; dataset 0: it reads none.
std::string Evaluate(CoreDriver& d, GroupId group, uint64_t dataset, uint32_t steps) {
  FunctionWork work;
  work.fingerprint = Fingerprint(6);
  work.steps = steps;
  work.dataset = dataset;
  work.group = group;
  return d.Step(event::Schedule{std::move(work)});
}

// Shells ask the core for what they are to start, so nothing may be started that has ended.
TEST(CoreData, NothingOfAGroupStartsBesideOneThatIsOutOfData) {
  CoreDriver d;
  d.Serve(0);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  const auto eval = [&](uint64_t dataset, uint32_t steps) {
    return Evaluate(d, GroupId(1), dataset, steps);
  };
  d.Step(event::GroupMade{GroupId(1), ViewId()});
  eval(kData, 2);  // all of the worker's data
  eval(kData, 1);
  eval(0, 1);
  d.Join(pb::ROLE_WORKER, 10, 0);
  const uint64_t first = kFirstInGroups.value();
  EXPECT_EQ(d.Installed(0, 10),
            absl::StrCat("finish ", first + 1, " OUT_OF_RANGE; finish ", first, " CANCELLED; ",
                         "finish ", first + 2, " CANCELLED; group 1 failed OUT_OF_RANGE"));
  EXPECT_TRUE(d.core.done(GroupId(1)));
  EXPECT_THAT(eval(0, 1), ::testing::HasSubstr("; start ")) << "there is room for it";
}

TEST(CoreData, OthersStartBesideAGroupThatIsOutOfData) {
  CoreDriver d;
  d.Serve(0);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  const auto eval = [&](GroupId group, uint64_t dataset) {
    return Evaluate(d, group, dataset, /*steps=*/2);
  };
  for (const GroupId group : {GroupId(1), GroupId(2)}) d.Step(event::GroupMade{group, ViewId()});
  for (int i = 0; i < 2; ++i) eval(GroupId(1), kData);
  eval(GroupId(2), 0);
  for (int i = 0; i < 3; ++i) d.Schedule();
  d.Join(pb::ROLE_WORKER, 10, 0);
  // The worker has room for two functions: both groups have one first, and training waits.
  const std::string wanted = d.Installed(0, 10);
  const uint64_t first = kFirstInGroups.value();
  EXPECT_THAT(wanted, ::testing::HasSubstr(absl::StrCat("start ", first, " on 0"))) << wanted;
  EXPECT_THAT(wanted, ::testing::HasSubstr(absl::StrCat("start ", first + 2, " on 0"))) << wanted;
  d.Result(first + 2, 0);
  d.Result(first + 2, 1);
  EXPECT_EQ(d.Ended(first + 2), absl::StrCat("finish ", first + 2, " OK; start 1 on 0 from 0"));
  d.Result(1, 0);
  // The group's turn: its second function has no data, and its first one runs.
  EXPECT_EQ(d.Ended(1), absl::StrCat("finish 1 OK; finish ", first + 1, " OUT_OF_RANGE; finish ",
                                     first, " CANCELLED; stop run 1 on 0; group 1 failed ",
                                     "OUT_OF_RANGE; start 2 on 0 from 0; start 3 on 0 from 0"));
}

// The room that one group leaves shows that another one is out of data, too, which ends what was
// about to start.
TEST(CoreData, GroupsThatAreOutOfDataOneAfterTheOtherStartNothing) {
  CoreDriver d;
  d.Serve(0);
  Add(d, Data(/*epochs=*/1, pb::VISITATION_NONE));
  const auto eval = [&](GroupId group, uint64_t dataset) {
    return Evaluate(d, group, dataset, /*steps=*/2);
  };
  for (const GroupId group : {GroupId(1), GroupId(2)}) d.Step(event::GroupMade{group, ViewId()});
  const uint64_t first = kFirstInGroups.value();
  eval(GroupId(1), kData);  // all of the worker's data
  eval(GroupId(2), 0);
  d.Join(pb::ROLE_WORKER, 10, 0);
  EXPECT_THAT(d.Installed(0, 10), ::testing::HasSubstr(absl::StrCat("start ", first + 1, " on 0")));
  eval(GroupId(1), kData);
  eval(GroupId(2), 0);
  eval(GroupId(2), kData);
  d.Result(first + 1, 0);
  d.Result(first + 1, 1);
  EXPECT_THAT(d.Ended(first + 1), ::testing::Not(::testing::HasSubstr("; start ")));
  EXPECT_TRUE(d.core.done(GroupId(1)));
  EXPECT_TRUE(d.core.done(GroupId(2)));
}

// What a lost server takes with it is repeated if recovery was enabled when it was scheduled.
TEST(CoreData, WhatTrainsIsKeptFromThenOnThatRecoveryIsEnabled) {
  CoreDriver d;
  d.Serve(1, /*recovery=*/false);
  d.Schedule();
  EXPECT_FALSE(d.core.queue().Find(FunctionId(1))->work.updates);
  d.Step(event::EnableRecovery{});
  d.Schedule();
  EXPECT_TRUE(d.core.queue().Find(FunctionId(2))->work.updates);
  EXPECT_FALSE(d.core.queue().Find(FunctionId(1))->work.updates);
}

TEST(CoreData, ACheckpointHoldsWhatWasHandedOutAndAJobGoesOnAfterIt) {
  const DataLayout data = Data(/*epochs=*/0);
  CoreDriver d;
  d.Serve(1);
  Add(d, data);
  Schedule(d, 2);
  Made(d, d.Last<action::MakePlan>());
  Schedule(d, 1);
  const auto positions = d.core.DataPositions();
  ASSERT_EQ(positions.size(), 1u);
  EXPECT_EQ(positions[0].epoch(), 1u);

  CoreDriver next;
  next.Serve(1);
  Add(next, data);
  auto point = std::make_shared<ResumePoint>();
  point->resumes = true;
  point->data.push_back({kData, positions[0], PlanOf(data, 1)});
  next.Want(
      2,
      {.kind = ServerTask::Kind::kLoad, .loaded = CheckpointNumber(4), .point = std::move(point)});
  next.Step(event::Loaded{.attempt = next.Last<action::Load>().attempt, .updates = {0}});
  next.Routing(2, next.core.generation().value());
  EXPECT_EQ(next.core.leases(kData)->shared()->epoch(), 1u);
  EXPECT_EQ(next.core.leases(kData)->shared()->left(), 1u);
  EXPECT_EQ(next.core.DataPositions().size(), 1u) << "also of what nothing was scheduled on yet";
}

// A job that trains on one dataset and then on the next: each has its own steps, also for a
// coordinator that continues it, when functions are under way, and when it is continued again
// before it has used all of them.
TEST(CoreData, AJobThatContinuesKnowsWhatWasTakenOfEachDataset) {
  const auto named = [](uint64_t id, const std::string& name) {
    DataLayout data = Data(/*epochs=*/0, pb::VISITATION_NONE);
    data.dataset.set_id(id);
    data.dataset.set_name(name);
    return data;
  };
  CoreDriver d;
  d.Serve(1);
  d.Step(event::DatasetAdded{named(3, "first"), nullptr});
  d.Step(event::DatasetAdded{named(4, "second"), nullptr});
  Schedule(d, 5, 3);
  for (uint32_t step = 0; step < 5; ++step) d.Result(1, step);
  d.Ended(1);
  Schedule(d, 2, 4);
  d.Result(2, 0);
  const auto saved = [](CoreDriver& driver) {
    driver.Want(9, {.kind = ServerTask::Kind::kSave});
    return driver.core.PositionAfterCuts();
  };
  const JobPosition job = saved(d);
  ASSERT_EQ(job.steps, 6u);
  ASSERT_TRUE(job.own_steps.has_value());
  EXPECT_EQ(job.own_steps->by_dataset,
            (std::map<std::string, uint64_t>{{"first", 5}, {"second", 2}}));
  EXPECT_EQ(job.own_steps->others, 0u);

  const auto resume = [](CoreDriver& driver, const JobPosition& from) {
    auto point = std::make_shared<ResumePoint>();
    point->resumes = true;
    point->job = from;
    driver.Want(2, {.kind = ServerTask::Kind::kLoad,
                    .loaded = CheckpointNumber(4),
                    .point = std::move(point)});
    driver.Step(event::Loaded{.attempt = driver.Last<action::Load>().attempt, .updates = {0}});
    driver.Routing(2, driver.core.generation().value());
  };
  CoreDriver next;
  next.Serve(1);
  next.Step(event::DatasetAdded{named(4, "second"), nullptr});
  resume(next, job);
  EXPECT_EQ(next.core.leases(4)->steps_taken(), 2u) << "one of which runs again";
  next.Step(event::DatasetAdded{named(5, "third"), nullptr});
  EXPECT_EQ(next.core.leases(5)->steps_taken(), 0u);
  next.Step(event::EpochStarted{4, 0, nullptr});
  const JobPosition later = saved(next);
  ASSERT_TRUE(later.own_steps.has_value());
  EXPECT_EQ(later.own_steps->by_dataset,
            (std::map<std::string, uint64_t>{{"first", 5}, {"second", 0}, {"third", 0}}));
  next.Step(event::DatasetAdded{named(3, "first"), nullptr});
  EXPECT_EQ(next.core.leases(3)->steps_taken(), 5u);

  JobPosition earlier = job;
  earlier.own_steps.reset();
  CoreDriver guess;
  guess.Serve(1);
  guess.Step(event::DatasetAdded{named(4, "second"), nullptr});
  resume(guess, earlier);
  EXPECT_EQ(guess.core.leases(4)->steps_taken(), 7u) << "all steps, and what has batches";
  EXPECT_EQ(saved(guess).own_steps->others, 6u) << "of the first, which may be created yet";
}

// No checkpoint holds where each worker is: a job that goes on counts the steps of the one before.
TEST(CoreData, StepsThatWereTrainedBeforeCountForDataOfEachWorkersOwn) {
  const DataLayout data = Data(/*epochs=*/0, pb::VISITATION_NONE);
  for (const bool added_before_the_load : {false, true}) {
    SCOPED_TRACE(added_before_the_load);
    CoreDriver d;
    d.Serve(1);
    if (added_before_the_load) Add(d, data);
    auto point = std::make_shared<ResumePoint>();
    point->resumes = true;
    point->job.steps = 12;
    d.Want(2, {.kind = ServerTask::Kind::kLoad,
               .loaded = CheckpointNumber(4),
               .point = std::move(point)});
    const action::Load load = d.Last<action::Load>();
    d.Step(event::Loaded{.attempt = load.attempt, .updates = {0}});
    if (!added_before_the_load) Add(d, data);
    ASSERT_NE(d.core.leases(kData), nullptr);
    EXPECT_EQ(d.core.leases(kData)->steps_taken(), 12u);
    d.Routing(2, load.generation.value());
    d.Installed(0, 10);
    EXPECT_EQ(Schedule(d, 2), "scheduled 1; start 1 on 0 from 0");
    EXPECT_EQ(d.core.leases(kData)->steps_taken(), 14u);
    Add(d, data);
    EXPECT_EQ(d.core.leases(kData)->steps_taken(), 14u) << "it is known already";
  }
}

}  // namespace
}  // namespace mu
