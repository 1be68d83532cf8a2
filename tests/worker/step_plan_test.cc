#include "worker/step_plan.h"

#include "proto/worker.pb.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

void AddRange(muster::RunRequest* run, uint64_t lease, uint32_t first, uint32_t batches) {
  auto* range = run->add_batches();
  range->mutable_lease()->set_index(lease);
  range->set_first_batch(first);
  range->set_batches(batches);
}

TEST(StepPlanTest, StepsFollowTheRanges) {
  muster::RunRequest run;
  AddRange(&run, 4, 7, 2);
  AddRange(&run, 5, 0, 0);  // an empty one holds no step
  AddRange(&run, 6, 0, 3);
  const StepPlan plan(run.batches());
  const std::pair<uint64_t, uint32_t> expected[] = {{4, 7}, {4, 8}, {6, 0}, {6, 1}, {6, 2}};
  for (uint32_t step = 0; step < 5; ++step) {
    const auto place = plan.At(step);
    ASSERT_NE(place.lease, nullptr) << step;
    EXPECT_EQ(place.lease->index(), expected[step].first) << step;
    EXPECT_EQ(place.batch, expected[step].second) << step;
  }
}

TEST(StepPlanTest, BeyondTheDataThereIsNoLease) {
  muster::RunRequest run;
  EXPECT_EQ(StepPlan(run.batches()).At(0).lease, nullptr);
  AddRange(&run, 1, 0, 2);
  const StepPlan plan(run.batches());
  EXPECT_NE(plan.At(1).lease, nullptr);
  EXPECT_EQ(plan.At(2).lease, nullptr);
  EXPECT_EQ(plan.At(~0u).lease, nullptr);
}

TEST(StepPlanTest, HugeRangesDoNotOverflow) {
  muster::RunRequest run;
  AddRange(&run, 1, 0, ~0u);
  AddRange(&run, 2, 0, ~0u);
  const StepPlan plan(run.batches());
  EXPECT_EQ(plan.At(~0u - 1).lease->index(), 1u);
  EXPECT_EQ(plan.At(~0u).lease->index(), 2u);
}

TEST(StepPlanTest, LeasesThatAResumedRunStillNeeds) {
  muster::RunRequest run;
  AddRange(&run, 1, 0, 2);
  AddRange(&run, 2, 0, 2);
  const StepPlan plan(run.batches());
  ASSERT_EQ(plan.LeasesFrom(0).size(), 2u);
  ASSERT_EQ(plan.LeasesFrom(1).size(), 2u);
  ASSERT_EQ(plan.LeasesFrom(2).size(), 1u);
  EXPECT_EQ(plan.LeasesFrom(2)[0]->index(), 2u);
  EXPECT_TRUE(plan.LeasesFrom(4).empty());
}

}  // namespace
}  // namespace mu
