#include "coordinator/cluster/checkpoint_directory.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr char kPrefix[] = "ckpt-";

// Whether a folder holds a checkpoint. One that cannot be looked at is not one that is not there.
absl::StatusOr<bool> IsComplete(const std::string& path) {
  const absl::Status found = GetFileInfo(JoinPath(path, kManifestName)).status();
  if (!found.ok() && !absl::IsNotFound(found)) return found;
  return found.ok();
}

std::string Path(const std::string& parent, uint64_t number) {
  return absl::StrCat(parent, "/", kPrefix, absl::StrFormat("%08d", number));
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> NumbersIn(const std::string& parent,
                                                const std::string& prefix) {
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(parent));
  std::vector<uint64_t> numbers;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    uint64_t number = 0;
    if (absl::ConsumePrefix(&digits, prefix) && absl::SimpleAtoi(digits, &number))
      numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

absl::StatusOr<std::string> ClaimCheckpointDirectory(const std::string& parent) {
  MU_RETURN_IF_ERROR(MakeDirectories(parent));
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, NumbersIn(parent, kPrefix));
  uint64_t number = numbers.empty() ? 0 : numbers.back();
  while (true) {
    const std::string path = Path(parent, ++number);
    if (::mkdir(path.c_str(), 0777) == 0) {
      // Before older ones are deleted for it.
      MU_RETURN_IF_ERROR(SyncDirectory(parent));
      return path;
    }
    if (errno != EEXIST) return ErrnoToStatus(errno, "make the directory", path);
  }
}

absl::Status EmptyCheckpointDirectory(const std::string& path) {
  // First: what is broken off must not look like a checkpoint.
  MU_RETURN_IF_ERROR(RemoveTree(JoinPath(path, kManifestName)));
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
  for (const std::string& name : names) MU_RETURN_IF_ERROR(RemoveTree(JoinPath(path, name)));
  return absl::OkStatus();
}

absl::Status RemoveCheckpoint(const std::string& path) {
  MU_RETURN_IF_ERROR(EmptyCheckpointDirectory(path));
  return RemoveTree(path);
}

absl::StatusOr<std::vector<ListedCheckpoint>> ListCheckpointFolders(const std::string& parent) {
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, NumbersIn(parent, kPrefix));
  std::vector<ListedCheckpoint> folders;
  for (const uint64_t number : numbers) {
    const std::string path = Path(parent, number);
    if (!DirectoryExists(path)) continue;  // somebody else's file, or just removed
    MU_ASSIGN_OR_RETURN(const bool complete, IsComplete(path));
    folders.push_back({path, complete});
  }
  return folders;
}

absl::StatusOr<std::vector<std::string>> ListCheckpoints(const std::string& parent) {
  MU_ASSIGN_OR_RETURN(const auto folders, ListCheckpointFolders(parent));
  std::vector<std::string> paths;
  for (const auto& [path, complete] : folders) {
    if (complete) paths.push_back(path);
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> CheckpointsAt(const std::string& path) {
  if (!FileExists(path)) return absl::NotFoundError(absl::StrCat(path, " does not exist"));
  if (FileExists(JoinPath(path, kManifestName))) return std::vector<std::string>{path};
  for (const std::string& parent : {JoinPath(path, "checkpoints"), path}) {
    if (!DirectoryExists(parent)) continue;
    MU_ASSIGN_OR_RETURN(std::vector<std::string> complete, ListCheckpoints(parent));
    if (!complete.empty()) return complete;
  }
  return absl::NotFoundError(absl::StrCat(path, " holds no complete checkpoint"));
}

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const std::vector<std::string> found, CheckpointsAt(path));
  return found.back();
}

}  // namespace mu
