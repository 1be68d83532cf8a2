#include "worker/data/file_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status.h"
#include "common/base/steady_now.h"
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

// Of the file at this path, which is open; `held`: locked too.
struct LockFile {
  UniqueFd fd;
  bool held = false;
};

// Asks again for as long as `wait`, which makes a pause, says that somebody else's lock is worth
// waiting for: who holds it may be stopped, and never end.
absl::StatusOr<LockFile> OpenLock(const std::string& path, int operation,
                                  const std::function<bool()>& wait) {
  LockFile lock;
  while (true) {
    if (!lock.fd.valid() || !IsFileAt(lock.fd.get(), path)) {
      MU_ASSIGN_OR_RETURN(lock.fd, OpenOrCreate(path));
    }
    lock.held = flock(lock.fd.get(), operation | LOCK_NB) == 0;
    if (!lock.held && errno != EWOULDBLOCK && errno != EINTR)
      return ErrnoToStatus(errno, "lock", path);
    // Who removed it between the calls left a file that nobody else will lock.
    if (lock.held ? IsFileAt(lock.fd.get(), path) : !wait()) return lock;
  }
}

// Pauses between two looks at what other processes do, which they do not announce: short ones
// first.
class Pauses {
 public:
  absl::Duration Next() {
    const absl::Duration pause = next_;
    next_ = std::min(2 * next_, kLongest);
    return pause;
  }

 private:
  static constexpr absl::Duration kLongest = absl::Milliseconds(200);
  absl::Duration next_ = absl::Milliseconds(1);
};

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

FileCache::FileCache(std::string directory, uint64_t capacity_bytes, absl::Duration patience)
    : directory_(std::move(directory)), capacity_bytes_(capacity_bytes), patience_(patience) {}

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
  // The last user of another process has it alone while it clears up. If it is stopped there, this
  // one begins without the lock: what is removed later is made again.
  Pauses pauses;
  const absl::Time end = SteadyNow() + patience_;
  MU_ASSIGN_OR_RETURN(LockFile users, OpenLock(path, LOCK_SH, [&] {
                        Pause(pauses.Next());
                        return SteadyNow() < end;
                      }));
  lock_ = std::move(users.fd);
  return absl::OkStatus();
}

void FileCache::Pause(absl::Duration time) {
  MutexLock lock(&pause_mutex_);
  opened_.WaitFor(&pause_mutex_, time);
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
  absl::StatusOr<UniqueFd> copy = OpenOrMake(path, source, sink, fed);
  opened_.SignalAll();  // threads that wait for its lock
  return copy;
}

absl::StatusOr<UniqueFd> FileCache::OpenOrMake(const std::string& path, const FileInfo& source,
                                               ChunkSink* sink, bool* fed) {
  if (fed != nullptr) *fed = false;
  const std::string stem = CopyOf(path, source);
  const std::string copy = absl::StrCat(stem, kCopyEnding);
  const std::string lock_path = absl::StrCat(stem, kLockEnding);
  MU_RETURN_IF_ERROR(ErrorOfDevice(Prepare()));
  if (UniqueFd fd = OpenCopy(copy, lock_path); fd.valid()) return fd;
  // Whoever unpacks the file gets on as long as his unfinished copy grows.
  Pauses pauses;
  uint64_t unfinished = UnfinishedBytes(stem);
  absl::Time grown = SteadyNow();
  absl::StatusOr<LockFile> opened = OpenLock(lock_path, LOCK_EX, [&] {
    Pause(pauses.Next());
    if (OpenCopy(copy, lock_path).valid()) return false;
    if (const uint64_t now = UnfinishedBytes(stem); now != unfinished) {
      unfinished = now;
      grown = SteadyNow();
      chunks_.fetch_add(1, std::memory_order_relaxed);
    }
    return SteadyNow() - grown < patience_;
  });
  if (!opened.ok()) return ErrorOfDevice(opened.status());
  const LockFile lock = *std::move(opened);
  // Another thread or process may have made it while this one waited for the lock.
  if (UniqueFd fd = OpenCopy(copy, lock_path); fd.valid()) return fd;

  // Without the lock, others may be at it too: each makes a copy of his own, and the last one that
  // is renamed stays.
  if (lock.held) RemoveUnfinished(stem);
  static std::atomic<uint64_t> counter{0};
  std::string temporary;
  absl::StatusOr<UniqueFd> created;
  do {  // in another container, another process may have the same pid
    temporary = absl::StrCat(stem, kTemporary, getpid(), ".", counter.fetch_add(1));
    created = OpenOrCreate(temporary, O_EXCL);
  } while (absl::IsAlreadyExists(created.status()));
  if (!created.ok()) return ErrorOfDevice(created.status());
  UniqueFd fd = *std::move(created);
  absl::StatusOr<uint64_t> length = Unpack(path, temporary, fd.get(), sink);
  if (!length.ok()) {
    unlink(temporary.c_str());
    return length.status();
  }
  absl::Status status;
  if (ftruncate(lock.fd.get(), 0) != 0) status = ErrnoToStatus(errno, "cut", lock_path);
  if (status.ok()) status = WriteAll(lock.fd.get(), absl::StrCat(*length), lock_path);
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

std::vector<std::string> FileCache::Unfinished(const std::string& stem) const {
  const std::string begin = absl::StrCat(BaseName(stem), kTemporary);
  std::vector<std::string> paths;
  const auto names = ListDirectory(directory_);
  if (!names.ok()) return paths;
  for (const std::string& name : *names) {
    if (absl::StartsWith(name, begin)) paths.push_back(JoinPath(directory_, name));
  }
  return paths;
}

uint64_t FileCache::UnfinishedBytes(const std::string& stem) const {
  uint64_t bytes = 0;
  for (const std::string& path : Unfinished(stem)) bytes += FileSize(path).value_or(0);
  return bytes;
}

void FileCache::RemoveUnfinished(const std::string& stem) const {
  for (const std::string& path : Unfinished(stem)) RemoveFile(path).IgnoreError();
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
