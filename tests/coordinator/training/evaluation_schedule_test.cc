#include "coordinator/training/evaluation_schedule.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

const absl::Time kBegin = absl::UnixEpoch();

TEST(EvaluationSchedule, NothingIsDueWithoutAPeriod) {
  EXPECT_FALSE(EvalEvery().any());
  const EvaluationSchedule schedule({}, 0, kBegin);
  EXPECT_FALSE(schedule.Due(100, 1, kBegin + absl::Hours(1)));
  EXPECT_GT(schedule.StepsUntilDue(100), uint64_t{1} << 60);
}

TEST(EvaluationSchedule, BySteps) {
  EvaluationSchedule schedule({.steps = 10}, 0, kBegin);
  EXPECT_FALSE(schedule.Due(0, 0, kBegin)) << "nothing was trained";
  EXPECT_EQ(schedule.StepsUntilDue(0), 10u);
  EXPECT_EQ(schedule.StepsUntilDue(13), 7u);
  EXPECT_FALSE(schedule.Due(13, 1, kBegin + absl::Hours(1)));
  EXPECT_TRUE(schedule.Due(20, 0, kBegin));
  schedule.Evaluated(20, kBegin);
  EXPECT_FALSE(schedule.Due(20, 1, kBegin)) << "not twice after the same steps";
  EXPECT_EQ(schedule.StepsUntilDue(20), 10u);
  EXPECT_TRUE(schedule.Due(30, 0, kBegin));
}

TEST(EvaluationSchedule, ByStepsWhereNotEachStepIsAsked) {
  EvaluationSchedule schedule({.steps = 10}, 0, kBegin);
  EXPECT_FALSE(schedule.Due(8, 0, kBegin, 4));
  EXPECT_TRUE(schedule.Due(12, 0, kBegin, 4)) << "10 lies in the round from 9 to 12";
  EXPECT_FALSE(schedule.Due(12, 0, kBegin, 2)) << "and not in one from 11";
  schedule.Evaluated(12, kBegin);
  EXPECT_FALSE(schedule.Due(12, 1, kBegin, 4));
  EXPECT_FALSE(schedule.Due(13, 1, kBegin, 4)) << "that round ended late";
  EXPECT_FALSE(schedule.Due(16, 0, kBegin, 4));
  EXPECT_TRUE(schedule.Due(20, 0, kBegin, 4));
  EXPECT_TRUE(schedule.Due(20, 0, kBegin, 20)) << "a round longer than the period";
}

TEST(EvaluationSchedule, ByEpochs) {
  EvaluationSchedule schedule({.epochs = 2}, 0, kBegin);
  EXPECT_FALSE(schedule.Due(7, 1, kBegin));
  EXPECT_FALSE(schedule.Due(10, 0, kBegin)) << "within one";
  EXPECT_TRUE(schedule.Due(14, 2, kBegin));
  schedule.Evaluated(14, kBegin);
  EXPECT_FALSE(schedule.Due(14, 2, kBegin));
  EXPECT_TRUE(schedule.Due(28, 4, kBegin));
}

TEST(EvaluationSchedule, ByTimeSinceTheLastOneEnded) {
  EvaluationSchedule schedule({.time = absl::Seconds(5)}, 0, kBegin);
  EXPECT_FALSE(schedule.Due(7, 1, kBegin + absl::Seconds(4.9)));
  EXPECT_TRUE(schedule.Due(7, 0, kBegin + absl::Seconds(5)));
  schedule.Evaluated(7, kBegin + absl::Seconds(8));
  EXPECT_FALSE(schedule.Due(9, 0, kBegin + absl::Seconds(12)));
  EXPECT_TRUE(schedule.Due(9, 0, kBegin + absl::Seconds(13)));
  EXPECT_FALSE(schedule.Due(7, 0, kBegin + absl::Seconds(13))) << "nothing was trained since";
  // It goes on beside training.
  schedule.UnderWay(kBegin + absl::Seconds(13));
  schedule.UnderWay(kBegin + absl::Seconds(20));
  EXPECT_FALSE(schedule.Due(9, 0, kBegin + absl::Seconds(24.9)));
  EXPECT_TRUE(schedule.Due(9, 0, kBegin + absl::Seconds(25)));
}

TEST(EvaluationSchedule, AContinuedJobDoesNotEvaluateAgainWhereItStopped) {
  EXPECT_FALSE(EvaluationSchedule({.epochs = 1}, 14, kBegin).Due(14, 2, kBegin));
  EXPECT_TRUE(EvaluationSchedule({.epochs = 1}, 7, kBegin).Due(14, 2, kBegin));
}

}  // namespace
}  // namespace mu
