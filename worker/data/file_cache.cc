#include "worker/data/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/env/compression.h"
#include "worker/data/file_index.h"
#include "worker/data/input_errors.h"

namespace mu {
namespace {

constexpr absl::string_view kCopyEnding = ".unpacked";
constexpr absl::string_view kLockEnding = ".unpacked.lock";  // holds the length of the copy
constexpr absl::string_view kTemporary = ".unpacked.tmp.";
constexpr absl::string_view kDirectoryLock = ".users.unpacked.lock";
constexpr size_t kChunkBytes = size_t{1} << 20;

bool IsOurs(absl::string_view name) {
  return absl::EndsWith(name, kCopyEnding) || absl::EndsWith(name, kLockEnding) ||
         absl::StrContains(name, kTemporary);
}

// Opens a file of ours, which is made if there is none. The last user of another process, or
// somebody who cleans up, may remove the directory at any moment; then it is made again.
absl::StatusOr<UniqueFd> OpenOrCreate(const std::string& path, int flags = 0) {
  constexpr int kMostTries = 10;
  for (int tries = 1;; ++tries) {
    MU_RETURN_IF_ERROR(MakeDirectories(DirectoryOf(path)));
    UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644));
    if (fd.valid()) return fd;
    const int error = errno;
    if (error != ENOENT || tries == kMostTries) return ErrnoToStatus(error, "open", path);
  }
}

absl::StatusOr<UniqueFd> OpenLock(const std::string& path, int operation) {
  while (true) {
    MU_ASSIGN_OR_RETURN(UniqueFd fd, OpenOrCreate(path));
    while (flock(fd.get(), operation) != 0) {
      if (errno != EINTR) return ErrnoToStatus(errno, "lock", path);
    }
    // Who removed it between the two calls left a file that nobody else will lock.
    if (IsFileAt(fd.get(), path)) return fd;
  }
}

// The copy, if it is there and as long as it was when it was made (a crash of the machine may have
// cut it).
UniqueFd OpenCopy(const std::string& copy, const std::string& lock) {
  UniqueFd fd(open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return fd;
  struct stat info;
  uint64_t length = 0;
  const absl::StatusOr<std::string> text = ReadFile(lock);
  if (fstat(fd.get(), &info) != 0 || !text.ok() || !absl::SimpleAtoi(*text, &length) ||
      length != static_cast<uint64_t>(info.st_size)) {
    return UniqueFd();
  }
  futimens(fd.get(), nullptr);  // its time of change is that of its last use
  return fd;
}

}  // namespace

FileCache::FileCache(std::string directory, uint64_t capacity_bytes)
    : directory_(std::move(directory)), capacity_bytes_(capacity_bytes) {}

FileCache::~FileCache() {
  MutexLock lock(&mutex_);
  if (!lock_.valid()) return;
  // Whoever gets the lock for itself alone is the last user. It is opened again, since a file that
  // has lost its name tells nothing of the other users.
  const std::string path = JoinPath(directory_, kDirectoryLock);
  lock_.Reset();
  lock_.Reset(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_.valid() || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 ||
      !IsFileAt(lock_.get(), path)) {
    return;
  }
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsOurs(name)) RemoveFile(JoinPath(directory_, name)).IgnoreError();
  }
  rmdir(directory_.c_str());  // fails if it holds anything else
}

absl::Status FileCache::Prepare() {
  MutexLock lock(&mutex_);
  const std::string path = JoinPath(directory_, kDirectoryLock);
  // Somebody may have removed it. Then those who come later do not see that the directory is used.
  if (lock_.valid() && IsFileAt(lock_.get(), path)) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(lock_, OpenLock(path, LOCK_SH));
  return absl::OkStatus();
}

std::string FileCache::CopyOf(const std::string& path, const FileInfo& source) const {
  const absl::StatusOr<std::string> absolute = AbsolutePath(path);
  const uint64_t key =
      HashCombine(HashCombine(HashString(absolute.ok() ? *absolute : path), source.size),
                  static_cast<uint64_t>(source.modified_ns));
  constexpr size_t kShownName = 64;
  return JoinPath(directory_, absl::StrCat(BaseName(path).substr(0, kShownName), ".",
                                           absl::Hex(key, absl::kZeroPad16)));
}

absl::StatusOr<UniqueFd> FileCache::Open(const std::string& path, const FileInfo& source,
                                         ChunkSink* sink, bool* fed) {
  if (fed != nullptr) *fed = false;
  const std::string stem = CopyOf(path, source);
  const std::string copy = absl::StrCat(stem, kCopyEnding);
  const std::string lock_path = absl::StrCat(stem, kLockEnding);
  MU_RETURN_IF_ERROR(ErrorOfDevice(Prepare()));
  if (UniqueFd fd = OpenCopy(copy, lock_path); fd.valid()) return fd;
  ++waiting_;
  absl::StatusOr<UniqueFd> locked = OpenLock(lock_path, LOCK_EX);
  --waiting_;
  if (!locked.ok()) return ErrorOfDevice(locked.status());
  const UniqueFd lock = *std::move(locked);
  // Another thread or process may have made it while this one waited for the lock.
  if (UniqueFd fd = OpenCopy(copy, lock_path); fd.valid()) return fd;

  RemoveUnfinished(stem);
  static std::atomic<uint64_t> counter{0};
  const std::string temporary = absl::StrCat(stem, kTemporary, getpid(), ".", counter.fetch_add(1));
  absl::StatusOr<UniqueFd> created = OpenOrCreate(temporary, O_EXCL);
  if (!created.ok()) return ErrorOfDevice(created.status());
  UniqueFd fd = *std::move(created);
  absl::StatusOr<uint64_t> length = Unpack(path, temporary, fd.get(), sink);
  if (!length.ok()) {
    unlink(temporary.c_str());
    return length.status();
  }
  absl::Status status;
  if (ftruncate(lock.get(), 0) != 0) status = ErrnoToStatus(errno, "cut", lock_path);
  if (status.ok()) status = WriteAll(lock.get(), absl::StrCat(*length), lock_path);
  if (status.ok()) status = RenameFile(temporary, copy);
  // Somebody may have removed the copy while it was made, or the directory. It is open and whole
  // all the same; who opens it next makes another one.
  const bool removed = absl::IsNotFound(status);
  if (!status.ok() && !removed) {
    unlink(temporary.c_str());
    return ErrorOfDevice(status);
  }
  if (fed != nullptr) *fed = sink != nullptr;
  if (removed) return fd;
  MU_RETURN_IF_ERROR(ErrorOfDevice(MakeRoom(*length, BaseName(copy), path)));
  return fd;
}

void FileCache::RemoveUnfinished(const std::string& stem) {
  const std::string begin = absl::StrCat(BaseName(stem), kTemporary);
  const auto names = ListDirectory(directory_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, begin)) RemoveFile(JoinPath(directory_, name)).IgnoreError();
  }
}

absl::StatusOr<uint64_t> FileCache::Unpack(const std::string& path, const std::string& temporary,
                                           int fd, ChunkSink* sink) {
  MU_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, OpenUnpacked(path));
  const std::unique_ptr<char[]> buffer(new char[kChunkBytes]);
  uint64_t length = 0;
  while (true) {
    MU_ASSIGN_OR_RETURN(const size_t n, stream->Read(buffer.get(), kChunkBytes));
    if (n == 0) return length;
    length += n;
    chunks_.fetch_add(1, std::memory_order_relaxed);
    MU_RETURN_IF_ERROR(ErrorOfDevice(MakeRoom(length, BaseName(temporary), path)));
    MU_RETURN_IF_ERROR(ErrorOfDevice(WriteAll(fd, absl::string_view(buffer.get(), n), temporary)));
    if (sink != nullptr) MU_RETURN_IF_ERROR(sink->Write(absl::string_view(buffer.get(), n)));
  }
}

absl::Status FileCache::MakeRoom(uint64_t bytes, absl::string_view keep, absl::string_view path) {
  if (bytes > capacity_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the unpacked copy of ", path, " takes more than the ", capacity_bytes_,
        " bytes that the cache ", directory_, " may hold; give the cache more, or split the file"));
  }
  struct Copy {
    int64_t used_ns;
    uint64_t size;
    std::string path;
  };
  std::vector<Copy> copies;
  uint64_t total = bytes;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(directory_);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();  // somebody removed it, and all
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name == keep || !absl::EndsWith(name, kCopyEnding)) continue;
    const std::string copy = JoinPath(directory_, name);
    const absl::StatusOr<FileInfo> info = GetFileInfo(copy);
    if (!info.ok()) continue;  // somebody else made room
    total += info->size;
    copies.push_back({info->modified_ns, info->size, copy});
  }
  std::sort(copies.begin(), copies.end(),
            [](const Copy& a, const Copy& b) { return a.used_ns < b.used_ns; });
  for (const Copy& copy : copies) {
    if (total <= capacity_bytes_) break;
    RemoveFile(copy.path).IgnoreError();
    total -= copy.size;
  }
  return absl::OkStatus();
}

}  // namespace mu
