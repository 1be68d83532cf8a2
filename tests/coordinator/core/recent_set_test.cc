#include "coordinator/core/recent_set.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(RecentSet, KnowsTheLatest) {
  RecentSet<int> set(/*most=*/3);
  for (int i = 0; i < 5; ++i) set.Insert(i);
  EXPECT_FALSE(set.Contains(1));
  for (int i = 2; i < 5; ++i) EXPECT_TRUE(set.Contains(i));
  EXPECT_FALSE(set.Contains(5));
}

}  // namespace
}  // namespace mu
