// The `coordinator` program: the command line with the models that Muster brings.
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"

int main(int argc, char** argv) {
  return mu::RunCli(argc, argv, mu::ModelRegistry::WithBuiltins());
}
