#include "worker/data/inline_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "common/base/status.h"
#include "common/env/file.h"
#include "worker/data/input_errors.h"

namespace mu {
namespace {

absl::StatusOr<UniqueFd> InMemory(const std::string& path, absl::string_view contents) {
  // The name is for /proc alone, and may have no more than 249 bytes; a path may have any number.
  UniqueFd fd(memfd_create("muster-inline-file", MFD_CLOEXEC));
  if (!fd.valid()) return ErrorOfDevice(ErrnoToStatus(errno, "make a file in memory for", path));
  while (!contents.empty()) {
    const ssize_t n = write(fd.get(), contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrorOfDevice(ErrnoToStatus(errno, "write", path));
    contents.remove_prefix(static_cast<size_t>(n));
  }
  return fd;
}

}  // namespace

InlineFiles::InlineFiles(const pb::DatasetProto& dataset) {
  for (const pb::InlineFileProto& file : dataset.inline_files())
    contents_[file.path()] = &file.contents();
}

absl::StatusOr<UniqueFd> InlineFiles::Open(const std::string& path) {
  MutexLock lock(&mutex_);
  UniqueFd& kept = files_[path];
  if (!kept.valid()) {
    absl::StatusOr<UniqueFd> made = InMemory(path, *contents_.at(path));
    if (!made.ok()) return made;
    kept = *std::move(made);
  }
  UniqueFd fd(fcntl(kept.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return ErrorOfDevice(ErrnoToStatus(errno, "open", path));
  return fd;
}

}  // namespace mu
