#include "common/process/flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/version.h"

namespace mu {
namespace {

void NameEnvironment(CLI::App* app, const std::string& program) {
  for (CLI::Option* option : app->get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "version") continue;
    option->envname(EnvironmentNameOf(program, names[0]));
  }
  for (CLI::App* command : app->get_subcommands(nullptr)) NameEnvironment(command, program);
}

}  // namespace

std::string EnvironmentNameOf(const std::string& program, const std::string& flag) {
  const std::string name = absl::StrCat("muster_", program, "_", flag);
  return absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

void FinishFlags(CLI::App* app, const std::string& program) {
  app->set_version_flag("--version", VersionLine(program), "Prints the version and ends");
  NameEnvironment(app, program);
}

std::string VersionLine(const std::string& program) {
  return absl::StrCat(program, " (Muster) ", Version(), ", protocol ", kProtocol);
}

}  // namespace mu
