#include "coordinator/cli/run_cli.h"

#include <signal.h>

#include "common/client/health_command.h"
#include "common/process/descriptor_limit.h"
#include "common/process/fast_bins.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/stop_signals.h"

namespace mu {

int RunCli(int argc, const char* const* argv, const ModelRegistry& models) {
  EndOnSignalsAsFirstProcess();
  if (IsHealthCommand(argc, argv))
    return HealthMain(argc, argv, pb::ROLE_COORDINATOR, NewGrpcTransport);
  int exit_code = 0;
  const std::optional<CliOptions> options = ParseOptions(argc, argv, &exit_code);
  if (!options.has_value()) return exit_code;
  RaiseDescriptorLimit();
  DisableFastBins();
  // What is said to a pipe that nobody reads any more (`| tee log`, and Ctrl-C for both) is no
  // reason to end: there is something to save. Commands that only say something end with the pipe.
  const bool works =
      options->command == CliOptions::kTrain || options->command == CliOptions::kEval ||
      options->command == CliOptions::kPredict || options->command == CliOptions::kSoak;
  if (works) signal(SIGPIPE, SIG_IGN);
  switch (options->command) {
    case CliOptions::kTrain:
    case CliOptions::kEval:
    case CliOptions::kPredict:
      return RunJobCommand(*options, models);
    case CliOptions::kCheck:
      return RunCheckCommand(*options, models);
    case CliOptions::kStatus:
      return RunStatusCommand(*options);
    case CliOptions::kCheckpoints:
      return RunCheckpointsCommand(*options);
    case CliOptions::kExport:
      return RunExportCommand(*options, models);
    case CliOptions::kSoak:
      return RunSoakCommand(*options, models);
    case CliOptions::kMakeData:
      return RunMakeDataCommand(*options);
    case CliOptions::kStats:
      return RunStatsCommand(*options, models);
    case CliOptions::kMakeVocab:
      return RunMakeVocabCommand(*options, models);
    case CliOptions::kModels:
      return RunModelsCommand(*options, models);
    case CliOptions::kDescribe:
      return RunDescribeCommand(*options, models);
    case CliOptions::kMetrics:
      return RunMetricsCommand(*options);
  }
  return exit_code;
}

}  // namespace mu
