#include "coordinator/core/resumed_steps.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

FunctionQueue::Function Unfinished(uint64_t dataset, bool bound, uint32_t steps, uint32_t next) {
  FunctionQueue::Function function;
  function.work.dataset = dataset;
  function.bound = bound;
  function.steps = steps;
  function.next_step = next;
  return function;
}

// As an earlier program wrote it.
TEST(ResumedSteps, WhatWasTrainedAndWhatHasBatches) {
  ResumedSteps steps;
  EXPECT_EQ(steps.Of(1, "a"), 0u);
  JobPosition job;
  job.steps = 100;
  job.functions.unfinished[FunctionId(7)] = Unfinished(1, true, 10, 4);
  job.functions.unfinished[FunctionId(8)] = Unfinished(1, true, 5, 0);
  job.functions.unfinished[FunctionId(9)] = Unfinished(1, false, 1000, 0);
  job.functions.unfinished[FunctionId(10)] = Unfinished(2, true, 3, 0);
  steps.Resume(job);
  EXPECT_EQ(steps.Of(1, "a"), 111u);
  EXPECT_EQ(steps.Of(2, "b"), 103u);
  EXPECT_EQ(steps.Of(3, "c"), 100u);
  EXPECT_EQ(steps.steps().others, 100u) << "still not known";
  job.functions.unfinished.clear();
  steps.Resume(job);
  EXPECT_EQ(steps.Of(1, "a"), 100u);
}

TEST(ResumedSteps, WhatThePositionSays) {
  ResumedSteps steps;
  JobPosition job;
  job.steps = 100;
  job.functions.unfinished[FunctionId(7)] = Unfinished(1, true, 10, 4);
  job.own_steps = OwnSteps{.by_dataset = {{"a", 90}, {"b", 0}}, .others = 0};
  steps.Resume(job);
  EXPECT_EQ(steps.Of(1, "a"), 90u) << "with what has batches";
  EXPECT_EQ(steps.Of(2, "b"), 0u);
  EXPECT_EQ(steps.Of(3, "c"), 0u);
  job.own_steps->others = 40;
  steps.Resume(job);
  EXPECT_EQ(steps.Of(2, "b"), 0u) << "which has begun anew";
  EXPECT_EQ(steps.Of(3, "c"), 40u);
}

}  // namespace
}  // namespace mu
