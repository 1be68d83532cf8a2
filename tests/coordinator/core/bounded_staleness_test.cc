// How far a function may be ahead of the oldest step without a result.
#include <gmock/gmock.h>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Four workers without anything to do, and functions of `steps` steps that change parameters.
class BoundedStaleness : public ::testing::Test {
 protected:
  BoundedStaleness() {
    for (uint32_t w = 0; w < 4; ++w) queue_.WorkerReady(WorkerId(w), 1);
  }
  FunctionId Schedule(uint32_t steps, bool trains = true) {
    return queue_.Schedule({.steps = steps, .trains = trains, .updates = trains});
  }
  // The ids of what is started.
  std::vector<uint64_t> Dispatch() {
    std::vector<FunctionId> completed;
    std::vector<uint64_t> ids;
    for (const StartRun& start : queue_.Dispatch(&completed)) {
      ids.push_back(start.function.value());
      runs_[start.function] = start;
    }
    return ids;
  }
  void Result(uint64_t function, uint32_t step) {
    EXPECT_TRUE(queue_.StepDone(FunctionId(function), runs_.at(FunctionId(function)).run, step));
  }
  void Ended(uint64_t function) {
    queue_.RunEnded(FunctionId(function), runs_.at(FunctionId(function)).run);
  }

  FunctionQueue queue_{1, [](uint64_t, WorkerId, uint32_t) { return std::vector<BatchRange>(); }};
  std::map<FunctionId, StartRun> runs_;
};

using Ids = std::vector<uint64_t>;

TEST_F(BoundedStaleness, WithoutABoundNothingWaits) {
  for (int i = 0; i < 4; ++i) Schedule(10);
  EXPECT_EQ(Dispatch(), (Ids{1, 2, 3, 4}));
  EXPECT_FALSE(queue_.waits_for_steps());
}

TEST_F(BoundedStaleness, AStepStartsWhenThoseMoreThanTheBoundBeforeItAreApplied) {
  queue_.BoundStaleness(2);
  for (int i = 0; i < 5; ++i) Schedule(1);
  EXPECT_EQ(Dispatch(), (Ids{1, 2, 3})) << "step 2 may miss 0 and 1, step 3 not step 0";
  EXPECT_TRUE(queue_.waits_for_steps());
  EXPECT_EQ(queue_.waited_for_steps(), 1u);
  Result(2, 0);
  EXPECT_THAT(Dispatch(), IsEmpty()) << "step 0 has no result yet";
  Ended(2);
  EXPECT_THAT(Dispatch(), IsEmpty());
  EXPECT_EQ(queue_.waited_for_steps(), 1u) << "each function counts once";
  Result(1, 0);
  Ended(1);
  EXPECT_EQ(Dispatch(), (Ids{4, 5})) << "steps 0 and 1 are applied, step 2 is the oldest";
  EXPECT_FALSE(queue_.waits_for_steps());
}

TEST_F(BoundedStaleness, AFunctionWaitsForItsLastStep) {
  queue_.BoundStaleness(12);
  for (int i = 0; i < 3; ++i) Schedule(10);  // steps 0 to 9, 10 to 19, 20 to 29
  EXPECT_EQ(Dispatch(), (Ids{1}));
  for (uint32_t step = 0; step < 6; ++step) Result(1, step);
  EXPECT_THAT(Dispatch(), IsEmpty()) << "step 19 must not miss step 6";
  Result(1, 6);
  EXPECT_EQ(Dispatch(), (Ids{2})) << "in the middle of the first one";
}

// The bound is less than what a function has: it would never start if its own steps counted.
TEST_F(BoundedStaleness, ItsOwnStepsDoNotHoldAFunctionUp) {
  queue_.BoundStaleness(0);
  Schedule(10);
  Schedule(10);
  EXPECT_EQ(Dispatch(), (Ids{1}));
  for (uint32_t step = 0; step < 9; ++step) Result(1, step);
  EXPECT_THAT(Dispatch(), IsEmpty());
  Result(1, 9);
  EXPECT_THAT(Dispatch(), IsEmpty()) << "its end has not come";
  Ended(1);
  EXPECT_EQ(Dispatch(), (Ids{2}));
}

TEST_F(BoundedStaleness, WhatChangesNothingNeitherWaitsNorIsWaitedFor) {
  queue_.BoundStaleness(0);
  Schedule(5, /*trains=*/false);
  Schedule(1);
  EXPECT_EQ(Dispatch(), (Ids{1, 2}));
  Schedule(5, /*trains=*/false);
  EXPECT_EQ(Dispatch(), (Ids{3}));
}

TEST_F(BoundedStaleness, WhatGoesBackToTheQueueIsTheOldest) {
  queue_.BoundStaleness(2);
  for (int i = 0; i < 4; ++i) Schedule(1);
  EXPECT_EQ(Dispatch(), (Ids{1, 2, 3}));
  queue_.WorkerLost(*queue_.Find(FunctionId(1))->worker);
  EXPECT_EQ(Dispatch(), (Ids{1})) << "the bound holds for the others only";
  for (const uint64_t done : {2, 3}) {
    Result(done, 0);
    Ended(done);
  }
  EXPECT_THAT(Dispatch(), IsEmpty());
  Result(1, 0);
  EXPECT_EQ(Dispatch(), (Ids{4}));
}

// They run again from the checkpoint's position, at which the bound holds as well.
TEST_F(BoundedStaleness, RepeatsKeepTheBound) {
  queue_.BoundStaleness(1);
  for (int i = 0; i < 4; ++i) Schedule(1);
  EXPECT_EQ(Dispatch(), (Ids{1, 2}));
  for (const uint64_t done : {1, 2}) {
    Result(done, 0);
    Ended(done);
  }
  EXPECT_EQ(Dispatch(), (Ids{3, 4}));
  queue_.RollBack(kInitialValues);
  EXPECT_EQ(Dispatch(), (Ids{1, 2}));
}

TEST_F(BoundedStaleness, WithoutTheBoundWhatWaitedStarts) {
  queue_.BoundStaleness(0);
  for (int i = 0; i < 3; ++i) Schedule(1);
  EXPECT_EQ(Dispatch(), (Ids{1}));
  queue_.BoundStaleness(std::nullopt);
  EXPECT_EQ(Dispatch(), (Ids{2, 3}));
}

TEST(BoundedStalenessCore, AResultInTheMiddleOfAFunctionStartsTheNext) {
  testing::CoreDriver d;
  d.Serve(/*workers=*/2);
  d.Step(event::BoundStaleness{1});
  d.Schedule(/*steps=*/2);
  EXPECT_THAT(d.Schedule(/*steps=*/2), ::testing::Not(HasSubstr("start 2")));
  EXPECT_THAT(d.Result(1, 0), ::testing::Not(HasSubstr("start 2")));
  EXPECT_THAT(d.Result(1, 1), HasSubstr("start 2")) << "step 3 may miss step 2 only";
  d.Ended(1);
  d.Step(event::BoundStaleness{2});
  d.Schedule(/*steps=*/2);
  EXPECT_THAT(d.Result(2, 0), HasSubstr("start 3"));
  d.Step(event::BoundStaleness{0});
  d.Schedule(/*steps=*/1);
  EXPECT_THAT(d.Step(event::BoundStaleness{}), HasSubstr("start 4"));
}

}  // namespace
}  // namespace mu
