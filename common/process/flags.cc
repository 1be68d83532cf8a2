#include "common/process/flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/version.h"

namespace mu {
namespace {

std::string ValueOf(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  // Of a type and a check of CLI11's, "INT:N", "TEXT:{a,b}" or "FLOAT:POSITIVE", a person needs the
  // check if it is ours or a list of what is allowed. Other names are our own.
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  const std::string first = type.substr(0, colon);
  if (colon == std::string::npos ||
      (first != "INT" && first != "UINT" && first != "FLOAT" && first != "TEXT"))
    return absl::StrCat("=", type);
  const std::string check = type.substr(colon + 1);
  return absl::StrCat("=", check == "N" || check[0] == '{' ? check : first);
}

std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

// The page of docs/reference/flags.md, from here downwards.
void PrintPage(const CLI::App& app, const std::string& title) {
  std::string rows;
  for (const CLI::Option* option : app.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (option->get_group().empty() ||
        (!names.empty() && (names[0] == "help" || names[0] == "version")))
      continue;
    const std::string name =
        names.empty() ? option->get_name() : absl::StrCat("--", names[0], ValueOf(*option));
    const std::string& usual = option->get_default_str();
    const std::string value = option->get_required() ? "required"
                              : usual.empty()        ? ""
                                                     : absl::StrCat("`", usual, "`");
    absl::StrAppend(&rows, "| `", Cell(name), "` | ",
                    names.empty() ? "" : absl::StrCat("`", option->get_envname(), "`"), " | ",
                    value, " | ", Cell(option->get_description()), " |\n");
  }
  if (!rows.empty()) {
    std::cout << "\n## " << title << "\n\n"
              << app.get_description()
              << "\n\n| flag | environment variable | default | meaning |\n|---|---|---|---|\n"
              << rows;
  }
  for (const CLI::App* command : app.get_subcommands(nullptr))
    PrintPage(*command, title + " " + command->get_name());
}

// No range of CLI11 excludes "nan", and of "inf" it says that it lies outside of one with 300
// digits.
std::string RefuseNoNumber(const std::string& text) {
  double value = 0;
  if (!absl::SimpleAtod(text, &value) || std::isfinite(value)) return "";  // others say the rest
  return absl::StrCat("`", text, "` is no finite number");
}

void NameEnvironment(CLI::App* app, const std::string& program, const std::string& title) {
  // Hidden: it is for our own docs.
  app->add_flag_callback("--help_markdown",
                         [app, title] {
                           PrintPage(*app, title);
                           throw CLI::Success();
                         })
      ->group("");
  for (CLI::Option* option : app->get_options()) {
    const std::vector<std::string>& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "version") continue;
    option->envname(EnvironmentNameOf(program, names[0]));
    if (option->get_type_name().rfind("FLOAT", 0) == 0)
      option->transform(CLI::Validator(RefuseNoNumber, ""));  // goes before all checks
  }
  for (CLI::App* command : app->get_subcommands(nullptr))
    NameEnvironment(command, program, title + " " + command->get_name());
}

}  // namespace

std::string EnvironmentNameOf(const std::string& program, const std::string& flag) {
  const std::string name = absl::StrCat("muster_", program, "_", flag);
  return absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

void FinishFlags(CLI::App* app, const std::string& program) {
  app->set_version_flag("--version", VersionLine(program), "Prints the version and ends");
  NameEnvironment(app, program, program);
}

void ParseFlags(CLI::App* app, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") break;
    if (word.rfind("--", 0) != 0 || word.find('=') != word.size() - 1) continue;
    const std::string flag = word.substr(0, word.size() - 1);
    throw CLI::ValidationError(
        flag, absl::StrCat("there is no value after `=`; write ", word, "VALUE, or leave it out"));
  }
  app->parse(argc, argv);
}

std::string VersionLine(const std::string& program) {
  return absl::StrCat(program, " (Muster) ", Version(), ", protocol ", kProtocol);
}

}  // namespace mu
