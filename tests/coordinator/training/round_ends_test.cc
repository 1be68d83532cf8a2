#include "coordinator/training/round_ends.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(RoundEnds, EveryStepIsOneWithoutRounds) {
  for (const uint64_t steps : {0, 1, 7}) EXPECT_EQ(RoundEnds().Ended(steps), 1u);
}

TEST(RoundEnds, AfterEachReplicasOfALeaseAndWhereItEnds) {
  const RoundEnds ends(4, {6, 8, 3}, 17);
  const std::vector<uint64_t> expected = {1, 0, 0, 0, 4, 0, 2,     // the first lease
                                          0, 0, 0, 4, 0, 0, 0, 4,  // the second
                                          0, 0, 3};                // the third
  for (uint64_t steps = 0; steps < expected.size(); ++steps)
    EXPECT_EQ(ends.Ended(steps), expected[steps]) << steps;
  EXPECT_EQ(ends.Ended(18), 1u) << "what is not known holds up nothing";
}

TEST(RoundEnds, WhereTrainingEndsInTheMiddleOfALease) {
  const RoundEnds ends(4, {6, 8, 3}, 12);
  EXPECT_EQ(ends.Ended(10), 4u);
  EXPECT_EQ(ends.Ended(11), 0u);
  EXPECT_EQ(ends.Ended(12), 2u);
  EXPECT_EQ(ends.Ended(13), 1u);
}

TEST(RoundEnds, WithOneReplicaEachStep) {
  const RoundEnds ends(1, {3, 2}, 5);
  for (uint64_t steps = 0; steps <= 5; ++steps) EXPECT_EQ(ends.Ended(steps), 1u) << steps;
}

}  // namespace
}  // namespace mu
