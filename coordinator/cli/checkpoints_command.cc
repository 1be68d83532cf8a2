#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cli/checkpoint_table.h"
#include "coordinator/cli/commands.h"
#include "coordinator/cli/exit_code.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"

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

// DIR may be a checkpoint, a folder of checkpoints, or a run's directory. Oldest first.
absl::StatusOr<std::vector<CheckpointRow>> Find(const std::string& directory) {
  if (!DirectoryExists(directory)) return absl::NotFoundError(absl::StrCat("there is no directory ", directory));
  if (FileExists(JoinPath(directory, kManifestName))) return std::vector<CheckpointRow>{Look(directory)};
  std::vector<CheckpointRow> rows;
  for (const std::string& parent : {JoinPath(directory, "checkpoints"), directory}) {
    if (!DirectoryExists(parent)) continue;
    MU_ASSIGN_OR_RETURN(const auto paths, ListCheckpoints(parent));
    for (const std::string& path : paths) rows.push_back(Look(path));
    if (!rows.empty()) return rows;
  }
  return absl::NotFoundError(absl::StrCat("there is no complete checkpoint in ", directory,
                                          "; name a run's directory, its `checkpoints`, or one of those"));
}

}  // namespace

int RunCheckpointsCommand(const CliOptions& options) {
  auto rows = Find(options.checkpoint_directory);
  if (!rows.ok()) {
    absl::FPrintF(stderr, "%s\n", std::string(rows.status().message()));
    return kExitBadJob;
  }
  if (options.checkpoints_action == "show") {
    const CheckpointRow& newest = rows->back();
    if (!newest.problem.empty()) {
      absl::FPrintF(stderr, "%s\n", newest.problem);
      return kExitBadJob;
    }
    absl::PrintF("%s", CheckpointDescription(newest));
    return kExitDone;
  }
  bool good = true;
  for (CheckpointRow& row : *rows) {
    if (options.checkpoints_action == "verify" && row.problem.empty()) {
      const absl::Status verified = VerifyCheckpoint(row.path, row.manifest);
      row.problem = verified.ok() ? "" : std::string(verified.message());
    }
    good = good && row.problem.empty();
  }
  absl::PrintF("%s", CheckpointTable(*rows));
  if (options.checkpoints_action != "verify") return kExitDone;
  absl::PrintF("%s", good ? "every file has the size and the CRC32C that its manifest says\n"
                          : "a damaged checkpoint is not restored; Muster takes the newest good one\n");
  return good ? kExitDone : kExitBadJob;
}

}  // namespace mu
