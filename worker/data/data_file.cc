#include "worker/data/data_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "common/env/errno.h"
#include "common/env/host_name.h"

namespace mu {
namespace {

constexpr size_t kScanBytes = size_t{1} << 20;
constexpr size_t kHeadBytes = size_t{16} << 10;

absl::StatusOr<UniqueFd> OpenPlain(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  return fd;
}

// Through the whole file, or until the head is known.
absl::Status Scan(int fd, const std::string& path, bool head_only, FileIndexer* indexer) {
  const std::unique_ptr<char[]> buffer(new char[kScanBytes]);
  uint64_t offset = 0;
  const size_t step = head_only ? kHeadBytes : kScanBytes;
  while (!head_only || indexer->opened() == nullptr) {
    const ssize_t n = pread(fd, buffer.get(), step, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return absl::OkStatus();
    MU_RETURN_IF_ERROR(indexer->Write(absl::string_view(buffer.get(), static_cast<size_t>(n))));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsSameFile(const FileInfo& a, const FileInfo& b) {
  return a.size == b.size && a.modified_ns == b.modified_ns && a.inode == b.inode;
}

absl::Status FileChanged(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " has changed since the job began to read it; files must stay as they are while "
                   "a job uses them"));
}

absl::Status FileDiffers(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, " has changed since the job began to read it, or ", HostName(),
      " has another copy of it than the machine that looked through it; files must be the same for "
      "all workers and stay as they are while a job uses them"));
}

absl::StatusOr<DataFile> DataFile::Look(const std::string& path,
                                        std::shared_ptr<const RecordFormat> format, int part,
                                        uint32_t spacing, const FileAccess& access,
                                        std::shared_ptr<const FileIndex>* index) {
  DataFile file;
  file.path = path;
  file.is_inline = access.inline_files->Has(path);
  if (!file.is_inline) {
    MU_ASSIGN_OR_RETURN(file.source, GetFileInfo(path));
    if (file.source.directory)
      return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
    MU_ASSIGN_OR_RETURN(const Compression compression, DetectCompression(path));
    file.compressed = compression != Compression::kNone;
  }
  const bool head_only = index == nullptr;
  FileIndexer indexer(path, std::move(format), part, head_only ? 0 : spacing);
  bool fed = false;
  MU_ASSIGN_OR_RETURN(const UniqueFd fd, file.Open(access, head_only ? nullptr : &indexer, &fed));
  if (!fed) MU_RETURN_IF_ERROR(Scan(fd.get(), path, head_only, &indexer));
  if (!head_only || indexer.opened() == nullptr) {
    MU_ASSIGN_OR_RETURN(FileIndex found, indexer.Finish());
    if (!head_only) *index = std::make_shared<const FileIndex>(std::move(found));
  }
  file.format = indexer.opened();
  MU_RETURN_IF_ERROR(file.CheckUnchanged());
  return file;
}

absl::Status DataFile::CheckUnchanged() const {
  if (is_inline) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const FileInfo now, GetFileInfo(path));
  return IsSameFile(now, source) ? absl::OkStatus() : FileChanged(path);
}

absl::StatusOr<UniqueFd> DataFile::Open(const FileAccess& access, ChunkSink* sink,
                                        bool* fed) const {
  if (is_inline) return access.inline_files->Open(path);
  MU_RETURN_IF_ERROR(CheckUnchanged());
  return compressed ? access.cache->Open(path, source, sink, fed) : OpenPlain(path);
}

absl::Status PreadAll(int fd, char* buffer, uint64_t size, uint64_t offset,
                      const std::string& path) {
  while (size > 0) {
    const ssize_t n = pread(fd, buffer, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) return FileChanged(path);
    buffer += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SizeOfOpen(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return ErrnoToStatus(errno, "look at", path);
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace mu
