#include <cmath>
#include <cstdio>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cli/make_data.h"
#include "coordinator/cli/report.h"

namespace mu {

int RunMakeDataCommand(const CliOptions& options) {
  MakeDataOptions make;
  make.rows = options.rows;
  make.seed = options.seed;
  make.start = options.start;
  make.test_rows = options.test_rows;
  make.out_dir = options.out;
  make.files = options.files;
  MakeDataResult result;
  const absl::Time began = absl::Now();
  if (const absl::Status status = MakeCriteoData(make, &result); !status.ok()) {
    absl::FPrintF(stderr, "error: %s\n", std::string(status.message()));
    return ExitCodeOf(status);
  }
  absl::PrintF("%s rows, %.2f%% of them clicks, in %d files below %s, in %.1f s\n",
               WithCommas(static_cast<double>(result.rows)),
               100.0 * static_cast<double>(result.clicks) / static_cast<double>(result.rows),
               result.files.size(), options.out, absl::ToDoubleSeconds(absl::Now() - began));
  if (std::isfinite(result.oracle_auc)) {
    absl::PrintF("the oracle, who knows each row's probability, has AUC %.4f on %s\n",
                 result.oracle_auc, options.test_rows > 0 ? "test.tsv.gz" : "these rows");
  }
  return kExitDone;
}

}  // namespace mu
