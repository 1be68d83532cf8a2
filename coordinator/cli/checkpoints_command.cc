#include <cstdio>
#include <vector>

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
  absl::PrintF("%s",
               good ? "every file has the size and the CRC32C that its manifest says\n"
                    : "a damaged checkpoint is not restored; Muster takes the newest good one\n");
  return good ? kExitDone : kExitBadJob;
}

}  // namespace mu
