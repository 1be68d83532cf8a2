// Files and directories of the local machine, with errors as absl::Status that name the path.
//
// All functions are thread safe. Codes: NOT_FOUND (no such file or directory), ALREADY_EXISTS,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED (disk or quota full, too many open files), INVALID_ARGUMENT
// (a directory where a file is meant or the reverse, name too long), DATA_LOSS (the device failed),
// else INTERNAL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mu {

// "cannot `doing` PATH: the system's words", with the code that fits `error` (an errno).
absl::Status ErrnoToStatus(int error, absl::string_view doing, absl::string_view path);

struct FileInfo {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  uint64_t inode = 0;
  bool directory = false;
};

absl::StatusOr<FileInfo> GetFileInfo(const std::string& path);
absl::StatusOr<uint64_t> FileSize(const std::string& path);
bool FileExists(const std::string& path);  // a file, a directory or anything else
bool DirectoryExists(const std::string& path);
bool IsFileAt(int fd, const std::string& path);  // whether `path` (still) names the open file

absl::StatusOr<std::string> ReadFile(const std::string& path);

// All of it, to where the descriptor is; `path` for the message.
absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path);

// Readers see the old contents or the new ones, whole, also after a crash: written beside the path,
// synced, renamed.
absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents);
// ALREADY_EXISTS if the path exists: of several callers, in whatever process, one succeeds.
absl::Status CreateFileExclusive(const std::string& path, absl::string_view contents);
absl::Status AppendToFile(const std::string& path, absl::string_view contents);

absl::Status RenameFile(const std::string& from, const std::string& to);
absl::Status RemoveFile(const std::string& path);
// What a directory holds, and itself; a path that does not exist is no error.
absl::Status RemoveTree(const std::string& path);
absl::Status MakeDirectories(const std::string& path);  // with parents; existing ones are no error
// Makes the names in a directory (new files, renames) last through a crash.
absl::Status SyncDirectory(const std::string& path);
// Names, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);
// A new, empty directory below $TMPDIR (or /tmp) whose name begins with `prefix`.
absl::StatusOr<std::string> MakeTempDirectory(absl::string_view prefix);

// "a/b" from "a" and "b"; an absolute `name` stays as it is.
std::string JoinPath(absl::string_view directory, absl::string_view name);
std::string DirectoryOf(absl::string_view path);  // "." where the path has none
std::string BaseName(absl::string_view path);
// Two ways to write one path give the same: without ".", doubled or last slashes, and without ".."
// unless a link is before it. Links are not resolved.
absl::StatusOr<std::string> AbsolutePath(const std::string& path);

// Removes the tree at its end.
class TempDirectory {
 public:
  static absl::StatusOr<TempDirectory> Create(absl::string_view prefix);
  TempDirectory(TempDirectory&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TempDirectory& operator=(TempDirectory&&) = delete;
  ~TempDirectory();
  const std::string& path() const { return path_; }

 private:
  explicit TempDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace mu
