// The shipped click job on the synthetic log, as a user runs it.
#pragma once

#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "tests/testing/coordinator_run.h"
#include "tests/testing/matchers.h"

namespace mu::testing {

// Makes so many rows (and 50,000 for evaluation), trains deploy/jobs/criteo_dlrm.yaml on them with
// 2 workers and 2 servers, real processes, and returns the AUC; 0 after a failure.
inline double AucAfter(int rows, const std::string& directory) {
  for (const auto& [name, count, start] : {std::tuple{"train", rows, std::string("0")},
                                           std::tuple{"test", 50000, std::string("1000000000")}}) {
    const auto made =
        RunCoordinator({"make-data", "criteo", absl::StrCat("--rows=", count), "--seed=1",
                        "--start=" + start, absl::StrCat("--out=", directory, "/", name)},
                       directory, false, absl::Minutes(5));
    EXPECT_THAT(made, IsOk());
    if (!made.ok() || made->exit_code != 0) return 0;
  }
  const auto run =
      RunCoordinator({"train", "deploy/jobs/criteo_dlrm.yaml", "--local", "--workers=2", "--ps=2",
                      "--job_dir=" + directory + "/job",
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

}  // namespace mu::testing
