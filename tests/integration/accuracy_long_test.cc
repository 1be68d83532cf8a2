// The synthetic click log at the sizes whose results are known (README of the data): by hand, a minute or two.
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/coordinator_run.h"
#include "tests/testing/matchers.h"

namespace mu::testing {
namespace {

double AucAfter(int rows, const std::string& directory) {
  for (const auto& [name, count, start] :
       {std::tuple{"train", rows, std::string("0")}, std::tuple{"test", 50000, std::string("1000000000")}}) {
    const auto made = RunCoordinator({"make-data", "criteo", absl::StrCat("--rows=", count), "--seed=1",
                                      "--start=" + start, absl::StrCat("--out=", directory, "/", name)},
                                     directory, false, absl::Minutes(5));
    EXPECT_THAT(made, IsOk());
    if (!made.ok() || made->exit_code != 0) return 0;
  }
  const auto run = RunCoordinator(
      {"train", "deploy/jobs/criteo_dlrm.yaml", "--local", "--workers=2", "--ps=2", "--job_dir=" + directory + "/job",
       absl::StrCat("--set=data.train.files=['", directory, "/train/*']"),
       absl::StrCat("--set=data.eval.files=['", directory, "/test/*']")},
      directory, true, absl::Minutes(30));
  EXPECT_THAT(run, IsOk());
  if (!run.ok()) return 0;
  EXPECT_EQ(run->exit_code, 0) << run->output;
  EXPECT_EQ(run->report["samples"], rows);
  EXPECT_EQ(run->report["eval"]["examples"], 50000);
  return run->report["eval"]["auc"].get<double>();
}

TEST(SyntheticClickLog, Auc300000Rows) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("clicks"));
  EXPECT_GE(AucAfter(300'000, directory.path()), 0.775);
}

TEST(SyntheticClickLog, Auc1000000Rows) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("clicks"));
  EXPECT_GE(AucAfter(1'000'000, directory.path()), 0.800);
}

}  // namespace
}  // namespace mu::testing
