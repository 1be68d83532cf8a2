// The commands. Each prints what it has to say and returns the exit code.
#pragma once

#include "coordinator/cli/options.h"

namespace mu {

class ModelRegistry;

int RunJobCommand(const CliOptions& options, const ModelRegistry& models);  // train, eval, predict
int RunCheckCommand(const CliOptions& options, const ModelRegistry& models);
int RunStatusCommand(const CliOptions& options);
int RunCheckpointsCommand(const CliOptions& options);
int RunMakeDataCommand(const CliOptions& options);
int RunStatsCommand(const CliOptions& options, const ModelRegistry& models);
int RunMakeVocabCommand(const CliOptions& options, const ModelRegistry& models);
int RunModelsCommand(const CliOptions& options, const ModelRegistry& models);
int RunDescribeCommand(const CliOptions& options, const ModelRegistry& models);
int RunMetricsCommand(const CliOptions& options);
int RunSoakCommand(const CliOptions& options, const ModelRegistry& models);
int RunExportCommand(const CliOptions& options, const ModelRegistry& models);

}  // namespace mu
