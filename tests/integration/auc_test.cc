// What the quickstart trains reaches the accuracy of one machine (README of the data).
#include "tests/integration/click_log.h"

namespace mu::testing {
namespace {

TEST(SyntheticClickLog, Auc300000Rows) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("clicks"));
  EXPECT_GE(AucAfter(300'000, directory.path()), 0.775);
}

}  // namespace
}  // namespace mu::testing
