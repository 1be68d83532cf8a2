#include "coordinator/training/step_pacer.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/matchers.h"

namespace mu {
namespace {

// Of a call whose steps' results told these gaps.
FunctionResult ResultWithGaps(const std::vector<uint32_t>& gaps_us) {
  FunctionState state(std::vector<std::string>(), static_cast<uint32_t>(gaps_us.size()));
  for (const uint32_t gap_us : gaps_us) {
    pb::StepResult step;
    step.set_gap_us(gap_us);
    absl::StatusOr<FunctionResult::Step> parsed = FunctionState::Parse(step);
    EXPECT_THAT(parsed, testing::IsOk());
    if (parsed.ok()) state.AddStep(step, *std::move(parsed));
  }
  state.Finish(absl::OkStatus());
  return *state.Wait();
}

TEST(StepPacer, PacksUntilTheCallCostsLessThanAHundredth) {
  StepPacer pacer(0, 0.0005);
  EXPECT_EQ(pacer.Next(100000, 2), 1u) << "nothing is known yet";
  pacer.Observe(1.0, 1000, 2);  // 2 ms a step on each of two workers
  const uint32_t steps = pacer.Next(100000, 2);
  EXPECT_GE(steps * 0.002 * StepPacer::kMaxGap, 0.0005);
  EXPECT_LT((steps - 1) * 0.002 * StepPacer::kMaxGap, 0.0005);
}

TEST(StepPacer, TheGapIsAsLargeAsTheUserAllows) {
  const auto steps = [](double max_gap) {
    StepPacer pacer(0, 0.5, max_gap);
    pacer.Observe(1.0, 8, 1);
    return pacer.Next(100000, 1);
  };
  EXPECT_EQ(steps(1.0), 4u);
  EXPECT_EQ(steps(0.25), 16u);
  EXPECT_EQ(steps(0.03125), 128u);
  EXPECT_EQ(steps(1e-300), StepPacer::kMaxSteps);
}

TEST(StepPacer, SlowStepsAreNotPackedAndTheEndIsShared) {
  StepPacer pacer(0, 0.0005);
  pacer.Observe(10.0, 10, 1);
  EXPECT_EQ(pacer.Next(1000, 1), 1u);
  pacer.Observe(1.0, 100000, 1);
  EXPECT_EQ(pacer.Next(100000, 1), StepPacer::kMaxSteps);
  EXPECT_EQ(pacer.Next(80, 2), 10u);
  EXPECT_EQ(pacer.Next(1, 2), 1u);
  EXPECT_EQ(pacer.Next(0, 2), 0u);
}

TEST(StepPacer, GapsThatAreLongerThanTheCallCount) {
  StepPacer pacer(0, 0.0005);
  pacer.Observe(1.0, 1000, 2);  // 2 ms a step on each of two workers
  for (int i = 0; i < 5; ++i) pacer.ObserveGap(0.002);
  EXPECT_EQ(pacer.Next(100000, 2), 25u) << "a few say little";
  for (int i = 0; i < 1000; ++i) pacer.ObserveGap((i % 2 == 0 ? 1.0 : 3.0) / 1024);
  EXPECT_EQ(pacer.Next(100000, 2), 118u) << "1/512 s and a fifth more, in 100 times of that";
  // Waits for something else.
  for (int i = 0; i < 1000; ++i) pacer.ObserveGap(0.1);
  EXPECT_EQ(pacer.Next(100000, 2), 118u);
  // The newest decide, and none below the call.
  for (size_t i = 0; i < StepPacer::kGaps; ++i) pacer.ObserveGap(0.0001);
  EXPECT_EQ(pacer.Next(100000, 2), 25u);
}

// As workers send them. The function had two runs, since a worker was lost.
TEST(StepPacer, AFunctionTellsTheGapsBeforeItsRuns) {
  StepPacer pacer(0, 0.0005);
  const FunctionResult function = ResultWithGaps({1906, 0, 2000, 0});
  for (size_t i = 0; i < StepPacer::kGaps; ++i) pacer.ObserveFunction(function, 1.0, 1000, 2);
  EXPECT_EQ(pacer.Next(100000, 2), 118u) << "1953 us and a fifth more, in 100 times of that";
}

TEST(StepPacer, ABoundOnStalenessLeavesWorkForEveryWorker) {
  StepPacer pacer(0, 0.0005, StepPacer::kMaxGap, /*most_ahead=*/40);
  pacer.Observe(1.0, 100000, 1);
  EXPECT_EQ(pacer.Next(100000, 2), 10u);
  EXPECT_EQ(pacer.Next(100000, 100), 1u);
  EXPECT_EQ(StepPacer(12, 0.0005, StepPacer::kMaxGap, 4).Next(100, 2), 12u) << "as the user says";
}

TEST(StepPacer, AFixedNumberStays) {
  StepPacer pacer(12, 0.0005);
  pacer.Observe(1.0, 100000, 1);
  EXPECT_EQ(pacer.Next(100, 2), 12u);
  EXPECT_EQ(pacer.Next(5, 2), 5u);
  EXPECT_EQ(pacer.Chosen(5, 2), 12u) << "what is left cuts the function, not the choice";
  EXPECT_EQ(pacer.Next(0, 2), 0u);
}

}  // namespace
}  // namespace mu
