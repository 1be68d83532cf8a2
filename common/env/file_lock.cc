#include "common/env/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::Status FileLock::Take(const std::string& path, const std::string& owner) {
  fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  held_ = !fd_.valid() && errno == EACCES;
  if (held_) return absl::OkStatus();
  if (!fd_.valid()) return ErrnoToStatus(errno, "open", path);
  held_ = flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  owner_.clear();
  if (!held_) {
    MU_ASSIGN_OR_RETURN(owner_, ReadFile(path));
    return absl::OkStatus();
  }
  const bool written =
      ftruncate(fd_.get(), 0) == 0 &&
      pwrite(fd_.get(), owner.data(), owner.size(), 0) == static_cast<ssize_t>(owner.size());
  return written ? absl::OkStatus() : ErrnoToStatus(errno, "write", path);
}

}  // namespace mu
