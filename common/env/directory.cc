// The half of file.h that is about directories and paths.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"

namespace mu {
namespace {

bool IsLink(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) != 0 || S_ISLNK(info.st_mode);
}

// An absolute path without what leads nowhere else.
std::string Tidied(absl::string_view path) {
  std::string tidied;
  for (const absl::string_view name : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (name == ".") continue;
    const bool back = name == ".." && BaseName(tidied) != "..";
    if (back && tidied.empty()) continue;  // above the root is the root
    if (back && !IsLink(tidied)) {
      tidied.resize(tidied.rfind('/'));
    } else {
      absl::StrAppend(&tidied, "/", name);
    }
  }
  return tidied.empty() ? "/" : tidied;
}

}  // namespace

absl::Status RemoveTree(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : ErrnoToStatus(errno, "look at", path);
  }
  if (!S_ISDIR(info.st_mode)) {
    return unlink(path.c_str()) == 0 || errno == ENOENT ? absl::OkStatus()
                                                        : ErrnoToStatus(errno, "remove", path);
  }
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(path);
  if (!names.ok()) return absl::IsNotFound(names.status()) ? absl::OkStatus() : names.status();
  for (const std::string& name : *names) MU_RETURN_IF_ERROR(RemoveTree(JoinPath(path, name)));
  if (rmdir(path.c_str()) != 0 && errno != ENOENT) return ErrnoToStatus(errno, "remove", path);
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  if (path.empty() || DirectoryExists(path)) return absl::OkStatus();
  const std::string parent = DirectoryOf(path);
  if (parent != path && parent != ".") MU_RETURN_IF_ERROR(MakeDirectories(parent));
  // Somebody else may have made it in between.
  if (mkdir(path.c_str(), 0755) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == EEXIST && DirectoryExists(path)) return absl::OkStatus();
  return ErrnoToStatus(error == EEXIST ? ENOTDIR : error, "make directory", path);
}

absl::Status SyncDirectory(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  // Some file systems have no such call for directories and say EINVAL.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoToStatus(errno, "sync", path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return ErrnoToStatus(errno, "list", path);
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) {
      if (errno != 0) return ErrnoToStatus(errno, "list", path);
      break;
    }
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> MakeTempDirectory(absl::string_view prefix) {
  const char* base = getenv("TMPDIR");
  std::string path =
      JoinPath(base != nullptr && *base != 0 ? base : "/tmp", absl::StrCat(prefix, ".XXXXXX"));
  if (mkdtemp(path.data()) == nullptr) return ErrnoToStatus(errno, "make directory", path);
  return path;
}

std::string JoinPath(absl::string_view directory, absl::string_view name) {
  if (directory.empty() || absl::StartsWith(name, "/")) return std::string(name);
  return absl::StrCat(directory, absl::EndsWith(directory, "/") ? "" : "/", name);
}

std::string DirectoryOf(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  path = path.substr(0, slash);
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path.empty() ? "/" : std::string(path);
}

std::string BaseName(absl::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos || path == "/") return std::string(path);
  return std::string(path.substr(slash + 1));
}

absl::StatusOr<std::string> AbsolutePath(const std::string& path) {
  if (absl::StartsWith(path, "/")) return Tidied(path);
  std::unique_ptr<char, void (*)(void*)> current(getcwd(nullptr, 0), free);
  if (current == nullptr) return ErrnoToStatus(errno, "find", "the current directory");
  return Tidied(JoinPath(current.get(), path));
}

absl::StatusOr<TempDirectory> TempDirectory::Create(absl::string_view prefix) {
  MU_ASSIGN_OR_RETURN(std::string path, MakeTempDirectory(prefix));
  return TempDirectory(std::move(path));
}

TempDirectory::~TempDirectory() {
  if (!path_.empty()) RemoveTree(path_).IgnoreError();
}

}  // namespace mu
