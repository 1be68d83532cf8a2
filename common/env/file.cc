#include "common/env/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/errno.h"
#include "common/env/unique_fd.h"

namespace mu {
namespace {

constexpr char kErrnoUrl[] = "muster/errno";

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
    case ELOOP:
      return absl::StatusCode::kInvalidArgument;
    case EIO:
      return absl::StatusCode::kDataLoss;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status WriteSynced(const std::string& path, int flags, absl::string_view contents) {
  UniqueFd fd(open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, "create", path);
  MU_RETURN_IF_ERROR(WriteAll(fd.get(), contents, path));
  if (fsync(fd.get()) != 0) return ErrnoToStatus(errno, "sync", path);
  // close() reports what a network file system could not store.
  if (close(fd.Release()) != 0) return ErrnoToStatus(errno, "close", path);
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteAll(int fd, absl::string_view contents, const std::string& path) {
  while (!contents.empty()) {
    const ssize_t n = write(fd, contents.data(), contents.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, "write", path);
    }
    contents.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status ErrnoToStatus(int error, absl::string_view doing, absl::string_view path) {
  absl::Status status(CodeOf(error),
                      absl::StrCat("cannot ", doing, " ", path, ": ", std::strerror(error)));
  status.SetPayload(kErrnoUrl, absl::Cord(absl::StrCat(error)));
  return status;
}

int ErrnoOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kErrnoUrl);
  int error = 0;
  return payload.has_value() && absl::SimpleAtoi(std::string(*payload), &error) ? error : 0;
}

absl::StatusOr<FileInfo> GetFileInfo(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoToStatus(errno, "look at", path);
  return FileInfo{.size = static_cast<uint64_t>(info.st_size),
                  .modified_ns = static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                                 info.st_mtim.tv_nsec,
                  .inode = info.st_ino,
                  .directory = S_ISDIR(info.st_mode)};
}

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  MU_ASSIGN_OR_RETURN(const FileInfo info, GetFileInfo(path));
  return info.size;
}

bool FileExists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

bool DirectoryExists(const std::string& path) {
  const absl::StatusOr<FileInfo> info = GetFileInfo(path);
  return info.ok() && info->directory;
}

bool IsFileAt(int fd, const std::string& path) {
  struct stat opened = {}, named = {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "look at", path);
  std::string contents;
  size_t used = 0;
  // One byte more than the size, so that the end is seen without growing; files in /proc have size
  // 0.
  contents.resize(static_cast<size_t>(info.st_size) + 1);
  while (true) {
    if (used == contents.size()) contents.resize(std::max<size_t>(4096, contents.size() * 2));
    const ssize_t n = read(fd.get(), contents.data() + used, contents.size() - used);
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoToStatus(errno, "read", path);
    }
    if (n == 0) break;
    used += static_cast<size_t>(n);
  }
  contents.resize(used);
  return contents;
}

absl::Status WriteFileAtomic(const std::string& path, absl::string_view contents) {
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = absl::StrCat(path, ".tmp.", getpid(), ".", counter.fetch_add(1));
  absl::Status status = WriteSynced(temporary, O_EXCL, contents);
  if (status.ok()) status = RenameFile(temporary, path);
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  return SyncDirectory(DirectoryOf(path));
}

absl::Status CreateFileExclusive(const std::string& path, absl::string_view contents) {
  MU_RETURN_IF_ERROR(WriteSynced(path, O_EXCL, contents));
  return SyncDirectory(DirectoryOf(path));
}

absl::Status AppendToFile(const std::string& path, absl::string_view contents) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  return WriteAll(fd.get(), contents, path);
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("rename ", from, " to"), to);
  }
  return absl::OkStatus();
}

absl::Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) != 0) return ErrnoToStatus(errno, "remove", path);
  return absl::OkStatus();
}

}  // namespace mu
