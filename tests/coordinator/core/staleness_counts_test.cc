#include "coordinator/core/staleness_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/coordinator/core/core_driver.h"

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(StalenessCounts, ClassesAreExactBelow16AndThenTwiceAsWideEachTime) {
  EXPECT_EQ(StalenessCounts::ClassOf(0), 0u);
  EXPECT_EQ(StalenessCounts::ClassOf(15), 15u);
  EXPECT_EQ(StalenessCounts::LastOf(15), 15u);
  EXPECT_EQ(StalenessCounts::ClassOf(16), 16u);
  EXPECT_EQ(StalenessCounts::ClassOf(31), 16u);
  EXPECT_EQ(StalenessCounts::LastOf(16), 31u);
  EXPECT_EQ(StalenessCounts::ClassOf(32), 32u);
  const uint32_t most = std::numeric_limits<uint32_t>::max();
  EXPECT_EQ(StalenessCounts::LastOf(StalenessCounts::ClassOf(most)), most);
}

TEST(StalenessCounts, StepsWhoseLatenessIsNotKnownAreLeftOut) {
  StalenessCounts counts;
  counts.Add({.step = 0, .late = 2});
  counts.Add({.step = 1});
  counts.Add({.step = 2, .late = 20, .refused = 3});
  counts.Add({.step = 3, .late = 2});
  counts.Add({.step = 4, .refused = 1});
  EXPECT_EQ(counts.steps, 3u);
  EXPECT_EQ(counts.updates, 24u);
  EXPECT_EQ(counts.max, 20u);
  EXPECT_EQ(counts.refused, 4u);
  EXPECT_THAT(counts.histogram, ElementsAre(Pair(2, 2), Pair(16, 1)));
}

TEST(StalenessCounts, TheCoreCountsEachResultThatItTakes) {
  testing::CoreDriver d;
  d.Serve(/*workers=*/1);
  d.Schedule(/*steps=*/2);
  event::Results results = {.start = d.runs.at(FunctionId(1))};
  results.steps.push_back({.step = 0, .samples = 4, .late = 5, .refused = 1});
  d.Step(event::Results(results));
  d.Step(event::Results(results));
  EXPECT_EQ(d.core.staleness().steps, 1u) << "the second is a repeat";
  EXPECT_EQ(d.core.staleness().refused, 1u);
}

}  // namespace
}  // namespace mu
