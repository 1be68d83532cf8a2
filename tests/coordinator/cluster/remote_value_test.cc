#include "coordinator/cluster/remote_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

TEST(FunctionStateTest, AFunctionHasStepsWhenAResultHasArrived) {
  FunctionState state({"x"}, 3);
  EXPECT_FALSE(state.HasSteps());
  state.AddStep(pb::StepResult(), {});
  EXPECT_TRUE(state.HasSteps());
}

// All results had arrived, but not the end of its run, when the checkpoint was begun from which the
// job is continued: it is complete, and not one for which no data were left.
TEST(FunctionStateTest, AFunctionHasStepsWhoseResultsCameBeforeARestart) {
  const FunctionState state({"x"}, 3, /*dataset=*/7, /*first_step=*/3);
  EXPECT_TRUE(state.HasSteps());
  EXPECT_FALSE(FunctionState({"x"}, 3, /*dataset=*/7, /*first_step=*/0).HasSteps());
}

}  // namespace
}  // namespace mu
