// The whole command line with the model of line_model.h: outside train line.yaml
#include "coordinator/cli/run_cli.h"
#include "coordinator/frontend/model_registry.h"
#include "line_model.h"

int main(int argc, char** argv) {
  mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
  if (!models.RegisterJson("line", MakeLineModel).ok()) return 2;
  return mu::RunCli(argc, argv, models);
}
