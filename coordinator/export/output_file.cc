#include "coordinator/export/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {
namespace {

constexpr size_t kBufferBytes = 1 << 20;

}  // namespace

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  const std::string temporary = absl::StrCat(path, ".part-", ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, "create", temporary);
  return OutputFile(path, temporary, std::move(fd));
}

OutputFile::~OutputFile() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

absl::Status OutputFile::Append(absl::string_view bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  MU_RETURN_IF_ERROR(Write(buffer_));
  buffer_.clear();
  return Write(bytes);
}

absl::Status OutputFile::Align(uint64_t alignment) {
  const uint64_t rest = size_ % alignment;
  return rest == 0 ? absl::OkStatus() : Append(std::string(alignment - rest, '\0'));
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "write", path_);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  MU_RETURN_IF_ERROR(Sync());
  return Place();
}

absl::Status OutputFile::Sync() {
  MU_RETURN_IF_ERROR(Write(buffer_));
  buffer_.clear();
  return ::fsync(fd_.get()) == 0 ? absl::OkStatus() : ErrnoToStatus(errno, "sync", path_);
}

absl::Status OutputFile::Place() {
  MU_RETURN_IF_ERROR(RenameFile(temporary_, path_));
  fd_.Reset();
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace mu
