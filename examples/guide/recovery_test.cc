// The pieces of docs/program.md that need real processes.
#include <cmath>

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

TEST(GuideOnProcessesTest, SoaksAProgram) {
  MU_ASSERT_OK_AND_ASSIGN(const mu::TempDirectory folder, mu::TempDirectory::Create("guide"));
  const std::string record = folder.path() + "/record";
  MU_ASSERT_OK_AND_ASSIGN(
      const mu::SoakResult result,
      SoakVisits({.binary_dir = MUSTER_BINARY_DIR}, "examples/guide/visits.csv", record));
  EXPECT_EQ(result.runs, 2u);
  EXPECT_TRUE(mu::FileExists(result.page));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<mu::SoakRecord> runs, mu::ReadRecords(record));
  ASSERT_EQ(runs.size(), 2u);
  for (const mu::SoakRecord& run : runs) {
    EXPECT_EQ(run.status, "done") << run.error;
    EXPECT_EQ(run.samples, 200u * 400);
    EXPECT_GT(run.seconds, run.train_seconds);
    EXPECT_EQ(run.metric, "logloss");
    EXPECT_TRUE(std::isfinite(run.quality));
  }
  EXPECT_TRUE(runs[0].losses.empty());
  ASSERT_TRUE(runs[1].losses.contains("worker")) << "nothing was killed";
  EXPECT_EQ(runs[1].losses.at("worker").count, 1u);
  EXPECT_EQ(runs[1].losses.at("worker").recovered, 1u);
  ASSERT_EQ(runs[1].failures.size(), 1u);
  EXPECT_EQ(runs[1].failures[0].role, "worker");
  EXPECT_THAT(runs[1].failures[0].kind, ::testing::AnyOf("died", "unreachable"));
  EXPECT_TRUE(runs[1].failures[0].recovered_ms.has_value());
}

}  // namespace
}  // namespace guide
