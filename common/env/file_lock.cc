#include "common/env/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

bool Lock(int fd) { return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

absl::Status WriteOwner(int fd, const std::string& owner, const std::string& path) {
  const bool written = ftruncate(fd, 0) == 0 && pwrite(fd, owner.data(), owner.size(), 0) ==
                                                    static_cast<ssize_t>(owner.size());
  return written ? absl::OkStatus() : ErrnoToStatus(errno, "write", path);
}

}  // namespace

absl::Status FileLock::Take(const std::string& path, const std::string& owner) {
  path_ = path;
  owner_.clear();
  do {
    fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    held_ = !fd_.valid() && errno == EACCES;
    if (held_) return absl::OkStatus();
    if (!fd_.valid()) return ErrnoToStatus(errno, "open", path);
    held_ = Lock(fd_.get());
    if (!held_) {
      MU_ASSIGN_OR_RETURN(owner_, ReadFile(path));
      return absl::OkStatus();
    }
    // Between the two calls another process may have taken over.
  } while (!IsFileAt(fd_.get(), path));
  return WriteOwner(fd_.get(), owner, path);
}

absl::Status FileLock::TakeOver(const std::string& path, const std::string& owner) {
  path_ = path;
  owner_.clear();
  held_ = false;
  std::string fresh = absl::StrCat(path, ".XXXXXX");
  fd_.Reset(mkostemp(fresh.data(), O_CLOEXEC));
  if (!fd_.valid()) return ErrnoToStatus(errno, "make", fresh);
  absl::Status status = fchmod(fd_.get(), 0644) == 0 && Lock(fd_.get())
                            ? WriteOwner(fd_.get(), owner, fresh)
                            : ErrnoToStatus(errno, "lock", fresh);
  if (status.ok() && rename(fresh.c_str(), path.c_str()) != 0)
    status = ErrnoToStatus(errno, "rename", fresh);
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  held_ = true;
  return absl::OkStatus();
}

bool FileLock::lost() const { return held_ && fd_.valid() && !IsFileAt(fd_.get(), path_); }

}  // namespace mu
