#include "coordinator/cluster/checkpoint_link.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"

namespace mu {
namespace {

constexpr char kMark[] = "replaceable";

// The mark holds the folder's inode: a copy has another one.
absl::Status Mark(const std::string& folder) {
  MU_ASSIGN_OR_RETURN(const FileInfo info, GetFileInfo(folder));
  return WriteFileAtomic(JoinPath(folder, kMark), absl::StrCat(info.inode));
}

bool IsMarked(const std::string& folder) {
  const auto info = GetFileInfo(folder);
  const auto mark = ReadFile(JoinPath(folder, kMark));
  return info.ok() && mark.ok() && *mark == absl::StrCat(info->inode);
}

// The numbers N of folders PATH.N.
absl::StatusOr<std::vector<uint64_t>> Numbers(const std::string& path) {
  return NumbersIn(DirectoryOf(path), BaseName(path) + ".");
}

// Nobody has it.
absl::StatusOr<uint64_t> NextNumber(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(path));
  return numbers.empty() ? 1 : numbers.back() + 1;
}

// The folder `path` and the link get each other's name. The folder becomes one of the numbered ones
// then, so that it can go when no server goes back to it any more. Returns what it is called.
absl::StatusOr<std::string> ReplaceFolder(const std::string& path, const std::string& link) {
  MU_ASSIGN_OR_RETURN(const uint64_t number, NextNumber(path));
  std::string folder = absl::StrCat(path, ".", number);
  if (::renameat2(AT_FDCWD, link.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0)
    return ErrnoToStatus(errno, "replace", path);
  MU_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
  MU_RETURN_IF_ERROR(RenameFile(link, folder));
  return folder;
}

}  // namespace

std::string LinkedFolder(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  if (size <= 0) return path;
  target.resize(static_cast<size_t>(size));
  return BaseName(target) == target ? JoinPath(DirectoryOf(path), target) : path;
}

std::shared_ptr<const JobCheckpoints::Held> HoldLinked(const std::string& path,
                                                       JobCheckpoints* checkpoints) {
  std::shared_ptr<const JobCheckpoints::Held> held;
  std::string folder;
  do {
    folder = LinkedFolder(path);
    held = checkpoints->Hold(folder);
  } while (LinkedFolder(path) != folder);  // it was replaced just now
  return held;
}

absl::StatusOr<pb::CheckpointProto> ReadLinkedManifest(
    const std::string& path, JobCheckpoints* checkpoints,
    std::shared_ptr<const JobCheckpoints::Held>* held) {
  std::string folder;
  absl::StatusOr<pb::CheckpointProto> manifest;
  do {
    *held = HoldLinked(path, checkpoints);
    folder = (*held)->folder();
    manifest = ReadManifest(folder);
    // Another one has taken its place meanwhile?
  } while ((*held)->IsNotCalled(folder) || LinkedFolder(path) != folder);
  return manifest;
}

absl::StatusOr<std::string> ClaimLinkedCheckpoint(const std::string& path) {
  MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
  MU_ASSIGN_OR_RETURN(uint64_t number, NextNumber(path));
  for (;; ++number) {
    std::string folder = absl::StrCat(path, ".", number);
    if (::mkdir(folder.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return ErrnoToStatus(errno, "make the directory", folder);
    }
    if (absl::Status marked = Mark(folder); !marked.ok()) {
      RemoveTree(folder).IgnoreError();
      return marked;
    }
    return folder;
  }
}

absl::Status LinkCheckpoint(const std::string& path, const std::string& folder,
                            JobCheckpoints* checkpoints) {
  const std::string link = path + ".link", before = LinkedFolder(path);
  MU_RETURN_IF_ERROR(RemoveTree(link));
  if (::symlink(BaseName(folder).c_str(), link.c_str()) != 0)
    return ErrnoToStatus(errno, "make the link", link);
  struct stat info = {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    MU_ASSIGN_OR_RETURN(const std::string replaced,
                        checkpoints->Rename(path, [&] { return ReplaceFolder(path, link); }));
    MU_RETURN_IF_ERROR(Mark(replaced));
  } else {
    if (::rename(link.c_str(), path.c_str()) != 0) return ErrnoToStatus(errno, "replace", path);
    MU_RETURN_IF_ERROR(SyncDirectory(DirectoryOf(path)));
  }
  MU_ASSIGN_OR_RETURN(const std::vector<uint64_t> numbers, Numbers(path));
  for (const uint64_t number : numbers) {
    const std::string other = absl::StrCat(path, ".", number);
    if (other == folder || checkpoints->IsWanted(other)) continue;
    if (other == before || IsMarked(other)) MU_RETURN_IF_ERROR(RemoveCheckpoint(other));
  }
  return absl::OkStatus();
}

}  // namespace mu
