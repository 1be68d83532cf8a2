#include "coordinator/cli/placement_flag.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr char kLoad[] = "load=";

absl::StatusOr<PlaceByLoad> LoadOfReport(const std::string& file) {
  MU_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  const auto report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto none = [&](const char* why) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " ", why, "; name what --report=FILE of a run of this job wrote"));
  };
  if (!report.is_object()) return none("is no report");
  const auto variables = report.find("variables");
  if (variables == report.end() || !variables->is_array() || variables->empty())
    return none("has no `variables`: its run did not train to its end");
  PlaceByLoad placement;
  for (const auto& variable : *variables) {
    if (!variable.is_object() || !variable.contains("name") || !variable["name"].is_string() ||
        !variable.contains("read_bytes") || !variable["read_bytes"].is_number_unsigned() ||
        !variable.contains("update_bytes") || !variable["update_bytes"].is_number_unsigned())
      return none("has `variables` without name, read_bytes and update_bytes");
    placement.load[variable["name"].get<std::string>()] =
        variable["read_bytes"].get<double>() + variable["update_bytes"].get<double>();
  }
  for (const auto& [name, load] : placement.load) {
    if (load > 0) return placement;
  }
  return none("says that nothing was read or updated");
}

}  // namespace

std::string PlacementFile(const std::string& text) {
  absl::string_view file = text;
  return absl::ConsumePrefix(&file, kLoad) ? std::string(file) : "";
}

absl::StatusOr<Placement> ParsePlacement(const std::string& text) {
  if (text.empty() || text == "bytes") return PlaceByBytes{};
  if (text == "round_robin") return PlaceRoundRobin{};
  if (const std::string file = PlacementFile(text); !file.empty()) return LoadOfReport(file);
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is none of bytes, round_robin and load=REPORT.json"));
}

void SettlePlacement(const CliOptions& cli, RunOptions* options, ProblemList* problems) {
  const auto placement = ParsePlacement(cli.placement);
  problems->Add(Place{"--placement"}, placement.status());
  if (placement.ok()) options->placement = *placement;
}

}  // namespace mu
