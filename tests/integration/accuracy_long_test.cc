// The synthetic click log at its larger size: by hand, a minute or two. The smaller one:
// auc_test.cc.
#include "tests/integration/click_log.h"

namespace mu::testing {
namespace {

TEST(SyntheticClickLog, Auc1000000Rows) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("clicks"));
  // PyTorch on one machine reaches 0.805. Muster usually reaches 0.816.
  EXPECT_GE(AucAfter(1'000'000, directory.path()), 0.805);
}

}  // namespace
}  // namespace mu::testing
