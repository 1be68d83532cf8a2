#include "common/env/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::Status FileLock::Take(const std::string& path) {
  fd_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd_.valid()) return ErrnoToStatus(errno, "open", path);
  held_ = flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  return absl::OkStatus();
}

}  // namespace mu
