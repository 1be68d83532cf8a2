#include "psserver/core/inherited_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include "common/base/hash.h"

namespace mu {
namespace {

using Range = AppliedSteps::Range;

AppliedSteps Of(const std::vector<Range>& ranges) {
  AppliedSteps steps;
  for (const Range& range : ranges) steps.AddRange(range);
  return steps;
}

constexpr PartitionKey Table(uint32_t id, uint32_t partition) {
  return {PartitionKey::Kind::kTable, id, partition};
}
constexpr PartitionKey Variable(uint32_t id) { return {PartitionKey::Kind::kVariable, id, 0}; }

TEST(AppliedStepsTest, StepsInARowAreOneRange) {
  AppliedSteps steps;
  for (uint32_t step : {5u, 7u, 6u, 9u, 8u}) EXPECT_TRUE(steps.Add({3, step, 0}));
  EXPECT_FALSE(steps.Add({3, 7, 0}));
  EXPECT_EQ(steps.Ranges(), (std::vector<Range>{{3, 0, 5, 10}}));
  EXPECT_EQ(steps.entries(), 1u);
  EXPECT_EQ(steps.steps(), 5u);
  const uint32_t last = std::numeric_limits<uint32_t>::max();
  EXPECT_TRUE(steps.Add({3, last, 0}));
  EXPECT_TRUE(steps.Contains({3, last, 0}));
  EXPECT_FALSE(steps.Contains({3, 0, 0}));
}

TEST(AppliedStepsTest, RandomHistoriesAgreeWithASetOfAll) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SplitMix random(seed);
    AppliedSteps steps;
    std::set<PushId> all;
    for (int i = 0; i < 60; ++i) {
      const PushId push{random.Below(3), static_cast<uint32_t>(random.Below(20)),
                        static_cast<uint32_t>(random.Below(2))};
      if (random.Below(4) == 0) {
        const Range range{push.function, push.part, push.step, push.step + random.Below(5)};
        steps.AddRange(range);
        for (uint64_t s = range.begin; s < range.end; ++s)
          all.insert({push.function, static_cast<uint32_t>(s), push.part});
      } else {
        EXPECT_EQ(steps.Add(push), all.insert(push).second);
      }
      if (random.Below(40) == 0) {
        steps.ForgetBelow(1);
        all.erase(all.begin(), all.lower_bound({1, 0, 0}));
      }
      ASSERT_EQ(steps.steps(), all.size());
      const std::vector<Range> ranges = steps.Ranges();
      ASSERT_EQ(steps.entries(), ranges.size());
      for (size_t r = 1; r < ranges.size(); ++r) {
        ASSERT_FALSE(ranges[r - 1].function == ranges[r].function &&
                     ranges[r - 1].part == ranges[r].part && ranges[r - 1].end >= ranges[r].begin)
            << "ranges that touch are one";
      }
      for (uint64_t f = 0; f < 3; ++f) {
        for (uint32_t s = 0; s < 25; ++s) {
          for (uint32_t p = 0; p < 2; ++p)
            ASSERT_EQ(steps.Contains({f, s, p}), all.count({f, s, p}) > 0);
        }
      }
      ASSERT_EQ(Of(ranges).Ranges(), ranges);
    }
  }
}

TEST(InheritedMemoryTest, APartitionKnowsWhatItsFileKnew) {
  InheritedMemory memory;
  const size_t first = memory.Add(Of({{7, 0, 0, 4}}));
  const size_t second = memory.Add(Of({{7, 0, 0, 6}, {8, 0, 2, 3}}));
  memory.Inherit(Variable(1), first);
  memory.Inherit(Table(100, 3), second);
  memory.Inherit(Table(100, 4), first);
  EXPECT_TRUE(memory.Contains(Variable(1), {7, 3, 0}));
  EXPECT_FALSE(memory.Contains(Variable(1), {7, 4, 0}));
  EXPECT_TRUE(memory.Contains(Table(100, 3), {7, 4, 0})) << "of a file that was cut later";
  EXPECT_FALSE(memory.Contains(Table(100, 4), {7, 4, 0}));
  EXPECT_TRUE(memory.Contains(Table(100, 3), {8, 2, 0}));
  EXPECT_FALSE(memory.Contains(Table(100, 3), {8, 2, 1})) << "another part";
  EXPECT_FALSE(memory.Contains(Table(1, 0), {7, 0, 0})) << "a table with a variable's id";
  EXPECT_FALSE(memory.Contains(Table(100, 5), {7, 0, 0})) << "inherited nothing";
}

TEST(InheritedMemoryTest, MemoriesOfARestoredStateThatWasSavedAgainAddUp) {
  InheritedMemory memory;
  const size_t grandparent = memory.Add(Of({{1, 0, 0, 10}}));
  const size_t parent = memory.Add(Of({{1, 0, 10, 12}, {2, 0, 0, 1}}));
  memory.Inherit(Variable(0), grandparent);
  memory.Inherit(Variable(0), parent);
  for (uint32_t step = 0; step < 12; ++step)
    EXPECT_TRUE(memory.Contains(Variable(0), {1, step, 0}));
  EXPECT_FALSE(memory.Contains(Variable(0), {1, 12, 0}));
  EXPECT_EQ(memory.MemoriesOf(Variable(0)), (std::vector<size_t>{grandparent, parent}));
  EXPECT_TRUE(memory.MemoriesOf(Variable(9)).empty());
}

TEST(InheritedMemoryTest, FallsWithTheLowWaterMark) {
  InheritedMemory memory;
  const size_t number = memory.Add(Of({{5, 0, 0, 3}, {6, 0, 0, 3}, {9, 0, 0, 3}}));
  memory.Inherit(Variable(0), number);
  memory.RaiseLowWater(6);
  EXPECT_FALSE(memory.Contains(Variable(0), {5, 0, 0}));
  EXPECT_TRUE(memory.Contains(Variable(0), {6, 0, 0}));
  EXPECT_EQ(memory.entries(), 2u);
  memory.RaiseLowWater(2);
  EXPECT_EQ(memory.entries(), 2u);
  EXPECT_EQ(memory.Add(Of({{5, 0, 0, 3}})), 1u);
  EXPECT_EQ(memory.entries(), 2u) << "what is below the mark is not taken";
  while (const uint64_t middle = memory.MiddleFunction()) {
    const size_t before = memory.entries();
    memory.RaiseLowWater(middle);
    ASSERT_LT(memory.entries(), before);
  }
  EXPECT_TRUE(memory.empty());
  EXPECT_TRUE(memory.memories().empty());
}

}  // namespace
}  // namespace mu
