#include "worker/step_plan.h"

#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Ranges = std::vector<LeasedBatches>;

void AddRange(Ranges* ranges, uint64_t index, uint32_t first, uint32_t batches) {
  auto lease = std::make_shared<muster::LeaseProto>();
  lease->set_index(index);
  ranges->push_back({std::move(lease), first, batches});
}

TEST(StepPlanTest, StepsFollowTheRanges) {
  Ranges run;
  AddRange(&run, 4, 7, 2);
  AddRange(&run, 5, 0, 0);  // an empty one holds no step
  AddRange(&run, 6, 0, 3);
  const StepPlan plan(run);
  const std::pair<uint64_t, uint32_t> expected[] = {{4, 7}, {4, 8}, {6, 0}, {6, 1}, {6, 2}};
  for (uint32_t step = 0; step < 5; ++step) {
    const auto place = plan.At(step);
    ASSERT_NE(place.lease, nullptr) << step;
    EXPECT_EQ(place.lease->index(), expected[step].first) << step;
    EXPECT_EQ(place.batch, expected[step].second) << step;
  }
}

TEST(StepPlanTest, BeyondTheDataThereIsNoLease) {
  Ranges run;
  EXPECT_EQ(StepPlan(run).At(0).lease, nullptr);
  AddRange(&run, 1, 0, 2);
  const StepPlan plan(run);
  EXPECT_NE(plan.At(1).lease, nullptr);
  EXPECT_EQ(plan.At(2).lease, nullptr);
  EXPECT_EQ(plan.At(~0u).lease, nullptr);
}

TEST(StepPlanTest, HugeRangesDoNotOverflow) {
  Ranges run;
  AddRange(&run, 1, 0, ~0u);
  AddRange(&run, 2, 0, ~0u);
  const StepPlan plan(run);
  EXPECT_EQ(plan.At(~0u - 1).lease->index(), 1u);
  EXPECT_EQ(plan.At(~0u).lease->index(), 2u);
}

TEST(StepPlanTest, LeasesThatAResumedRunStillNeeds) {
  Ranges run;
  AddRange(&run, 1, 0, 2);
  AddRange(&run, 2, 0, 2);
  const StepPlan plan(run);
  ASSERT_EQ(plan.LeasesFrom(0).size(), 2u);
  ASSERT_EQ(plan.LeasesFrom(1).size(), 2u);
  ASSERT_EQ(plan.LeasesFrom(2).size(), 1u);
  EXPECT_EQ(plan.LeasesFrom(2)[0]->index(), 2u);
  EXPECT_TRUE(plan.LeasesFrom(4).empty());
}

}  // namespace
}  // namespace mu
