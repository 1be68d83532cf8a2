#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/env/file.h"
#include "coordinator/cli/checkpoint_table.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/training/exit_code.h"

namespace mu {
namespace {

CheckpointRow Look(const std::string& path) {
  CheckpointRow row;
  row.path = path;
  const std::string manifest = JoinPath(path, kManifestName);
  if (const auto info = GetFileInfo(manifest); info.ok()) row.written_ns = info->modified_ns;
  auto read = ReadManifest(path);
  if (read.ok()) {
    row.manifest = *std::move(read);
  } else {
    row.problem = std::string(read.status().message());
  }
  return row;
}

// What becomes of the damaged ones. The oldest is the first.
std::string AboutDamage(const std::vector<CheckpointRow>& rows) {
  constexpr char kNotRestored[] = "a damaged checkpoint is not restored";
  if (rows.back().problem.empty()) return absl::StrCat(kNotRestored, "; the newest one is good\n");
  if (rows.size() == 1) return absl::StrCat(kNotRestored, "; use another one\n");
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (!row->problem.empty()) continue;
    return absl::StrCat(kNotRestored, ": a run that is continued takes the newest good one, ",
                        row->path, "; name that where eval, predict, export or train --checkpoint ",
                        "refuse a damaged one\n");
  }
  return absl::StrCat(kNotRestored, ", and none of these is good\n");
}

}  // namespace

int RunCheckpointsCommand(const CliOptions& options) {
  const auto paths = CheckpointsAt(options.checkpoint_directory);
  if (!paths.ok()) {
    absl::FPrintF(stderr,
                  "%s; name a run's directory, its folder of checkpoints, or one of those\n",
                  std::string(paths.status().message()));
    return kExitBadJob;
  }
  std::vector<CheckpointRow> rows;
  for (const std::string& path : *paths) rows.push_back(Look(path));
  if (options.checkpoints_action == "show") {
    const CheckpointRow& newest = rows.back();
    if (!newest.problem.empty()) {
      absl::FPrintF(stderr, "%s\n", newest.problem);
      return kExitBadJob;
    }
    absl::PrintF("%s", CheckpointDescription(newest));
    return kExitDone;
  }
  bool good = true;
  for (CheckpointRow& row : rows) {
    if (options.checkpoints_action == "verify" && row.problem.empty()) {
      const absl::Status verified = VerifyCheckpoint(row.path, row.manifest);
      row.problem = verified.ok() ? "" : std::string(verified.message());
    }
    good = good && row.problem.empty();
  }
  absl::PrintF("%s", CheckpointTable(rows));
  if (options.checkpoints_action != "verify") return kExitDone;
  absl::PrintF("%s", good ? "every file has the size and the CRC32C that its manifest says\n"
                          : AboutDamage(rows));
  return good ? kExitDone : kExitBadJob;
}

}  // namespace mu
