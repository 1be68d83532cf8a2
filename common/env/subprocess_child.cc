// The child's ends of the pipes of common/env/subprocess.h.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <thread>

#include "common/env/file.h"
#include "common/env/subprocess.h"
#include "common/env/unique_fd.h"

namespace mu {

std::string FolderOfThisProgram() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? DirectoryOf(absl::string_view(path, static_cast<size_t>(length))) : ".";
}

absl::Status AnnounceReady(int ready_fd, const std::string& line) {
  if (ready_fd < 0) return absl::OkStatus();
  UniqueFd fd(ready_fd);
  const std::string text = line + "\n";
  for (size_t written = 0; written < text.size();) {
    const ssize_t size = write(fd.get(), text.data() + written, text.size() - written);
    if (size < 0 && errno != EINTR) {
      return absl::ErrnoToStatus(errno, "cannot tell the parent process that this one is ready");
    }
    if (size > 0) written += static_cast<size_t>(size);
  }
  return absl::OkStatus();
}

void WatchParent(int parent_pipe_fd, std::function<void()> gone) {
  if (parent_pipe_fd < 0) return;
  fcntl(parent_pipe_fd, F_SETFD, FD_CLOEXEC);  // not for this process's own children
  std::thread([parent_pipe_fd, gone = std::move(gone)] {
    const UniqueFd fd(parent_pipe_fd);
    char byte;
    // Nobody writes; the read returns when the last writer, the parent, is gone.
    ssize_t size;
    do {
      size = read(fd.get(), &byte, 1);
    } while (size > 0 || (size < 0 && errno == EINTR));
    gone();
  }).detach();
}

}  // namespace mu
