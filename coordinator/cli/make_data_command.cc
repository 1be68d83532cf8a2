#include <cstdio>

#include "absl/strings/str_format.h"
#include "common/base/steady_now.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/make_data.h"
#include "coordinator/training/exit_code.h"

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
  const absl::Time began = SteadyNow();
  if (const absl::Status status = MakeCriteoData(make, &result); !status.ok()) {
    absl::FPrintF(stderr, "error: %s\n", std::string(status.message()));
    return ExitCodeOf(status);
  }
  absl::PrintF("%smade in %.1f s below %s\n", AboutData(make, result),
               absl::ToDoubleSeconds(SteadyNow() - began), options.out);
  return kExitDone;
}

}  // namespace mu
