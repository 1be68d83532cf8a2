#include "coordinator/training/batch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> TakeAll(BatchOrder<std::string>& order) {
  std::vector<std::string> taken;
  while (auto batch = order.Next()) taken.push_back(*batch);
  return taken;
}

TEST(BatchOrder, EachBatchWaitsForThoseBeforeIt) {
  BatchOrder<std::string> order({{0, 2}, {1, 1}, {2, 2}});
  order.Add(2, 0, "2.0");
  order.Add(0, 1, "0.1");
  EXPECT_THAT(TakeAll(order), IsEmpty());
  EXPECT_EQ(order.waiting(), 2u);
  order.Add(0, 0, "0.0");
  EXPECT_THAT(TakeAll(order), ElementsAre("0.0", "0.1"));
  order.Add(1, 0, "1.0");
  EXPECT_THAT(TakeAll(order), ElementsAre("1.0", "2.0"));
  order.Add(2, 1, "2.1");
  EXPECT_THAT(TakeAll(order), ElementsAre("2.1"));
  EXPECT_EQ(order.waiting(), 0u);
}

TEST(BatchOrder, ALeaseIsOverWhenItsLastBatchHasBeenTaken) {
  BatchOrder<std::string> order({{0, 1}, {1, 1}});
  order.Add(0, 0, "0.0");
  EXPECT_THAT(TakeAll(order), ElementsAre("0.0"));
  order.Add(1, 0, "1.0");
  EXPECT_THAT(TakeAll(order), ElementsAre("1.0"));
}

TEST(BatchOrder, LeasesWithoutBatches) {
  BatchOrder<std::string> order({{0, 0}, {3, 1}, {4, 0}});
  order.Add(3, 0, "3.0");
  EXPECT_THAT(TakeAll(order), ElementsAre("3.0"));
  BatchOrder<std::string> none({});
  EXPECT_THAT(TakeAll(none), IsEmpty());
}

}  // namespace
}  // namespace mu
