#include "common/process/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace mu {
namespace {

TEST(DescriptorLimitTest, IsTheHardOne) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 256;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int i = 0; i < 2; ++i) {
    RaiseDescriptorLimit();
    rlimit raised = {};
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
    EXPECT_EQ(raised.rlim_cur, before.rlim_max);
    EXPECT_EQ(raised.rlim_max, before.rlim_max);
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace mu
