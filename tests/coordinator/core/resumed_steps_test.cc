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

TEST(ResumedSteps, WhatWasTrainedAndWhatHasBatches) {
  ResumedSteps steps;
  EXPECT_EQ(steps.Of(1), 0u);
  JobPosition job;
  job.steps = 100;
  job.functions.unfinished[FunctionId(7)] = Unfinished(1, true, 10, 4);
  job.functions.unfinished[FunctionId(8)] = Unfinished(1, true, 5, 0);
  job.functions.unfinished[FunctionId(9)] = Unfinished(1, false, 1000, 0);
  job.functions.unfinished[FunctionId(10)] = Unfinished(2, true, 3, 0);
  steps.Resume(job);
  EXPECT_EQ(steps.Of(1), 111u);
  EXPECT_EQ(steps.Of(2), 103u);
  EXPECT_EQ(steps.Of(3), 100u);
  job.functions.unfinished.clear();
  steps.Resume(job);
  EXPECT_EQ(steps.Of(1), 100u);
}

}  // namespace
}  // namespace mu
