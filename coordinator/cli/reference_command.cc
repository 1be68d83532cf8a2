// models, describe and metrics: what there is to write in a job file.
#include <cstdio>

#include "absl/strings/str_format.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/reference_pages.h"
#include "coordinator/training/exit_code.h"

namespace mu {

int RunModelsCommand(const CliOptions& options, const ModelRegistry& models) {
  if (options.markdown) {
    absl::PrintF("%s", ModelsPage(models));
  } else {
    absl::PrintF("%s\n`coordinator describe MODEL` prints the keys of one.\n", ModelList(models));
  }
  return kExitDone;
}

int RunDescribeCommand(const CliOptions& options, const ModelRegistry& models) {
  const absl::StatusOr<std::string> text = DescribeModel(models, options.model);
  if (!text.ok()) {
    absl::FPrintF(stderr, "%s\n", std::string(text.status().message()));
    return kExitBadJob;
  }
  absl::PrintF("%s", *text);
  return kExitDone;
}

int RunMetricsCommand(const CliOptions& options) {
  absl::PrintF("%s", options.markdown ? MetricsPage() : MetricList());
  return kExitDone;
}

}  // namespace mu
