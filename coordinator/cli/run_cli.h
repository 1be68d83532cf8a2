// The whole command line of `coordinator`, for it and for users' own binaries, which bring their
// models:
//
//   int main(int argc, char** argv) {
//     mu::ModelRegistry models = mu::ModelRegistry::WithBuiltins();
//     if (!models.RegisterJson("two_tower", MakeTwoTower).ok()) return 2;
//     return mu::RunCli(argc, argv, models);
//   }
#pragma once

namespace mu {

class ModelRegistry;

// Runs the command and returns the process's exit code (coordinator/training/exit_code.h). Once per
// process.
int RunCli(int argc, const char* const* argv, const ModelRegistry& models);

}  // namespace mu
