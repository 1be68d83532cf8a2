// The `coordinator` program: the command line with the models that Muster brings.
#include "common/process/end_process.h"
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"

int main(int argc, char** argv) {
  mu::EndProcess(mu::RunCli(argc, argv, mu::ModelRegistry::WithBuiltins()));
}
