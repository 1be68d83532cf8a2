// The pieces of docs/program.md that need real processes.
#include "common/env/file.h"
#include "examples/guide/guide.h"
#include "tests/testing/matchers.h"

namespace guide {
namespace {

TEST(GuideOnProcessesTest, SurvivesLosses) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::TempDirectory folder, mu::TempDirectory::Create("guide"));
  MU_ASSERT_OK_AND_ASSIGN(const size_t lost,
                          SurviveLosses({.job_dir = folder.path(), .binary_dir = MUSTER_BINARY_DIR},
                                        "examples/guide/visits.csv"));
  EXPECT_GT(lost, 0);
}

}  // namespace
}  // namespace guide
