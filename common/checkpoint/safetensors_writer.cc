#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "common/env/work_progress.h"

namespace mu {
namespace {

// What direct writes are multiples of, in memory and in the file: few disks ask for more, and those
// get writes through the cache.
constexpr size_t kBlockBytes = 4096;
// Small enough to stay in the processor's cache between being filled, summed and written.
constexpr size_t kBufferBytes = SafetensorsWriter::kMostRoom + kBlockBytes;
// Where writes go through the system's cache: written out as it comes, and waited for one such
// piece later. So the disk is kept evenly busy, and the sync at the end has two of them to wait
// for, however much memory the cache has. Syncs on the way would bring other files' data to the
// disk.
constexpr uint64_t kWriteOutBytes = 32 << 20;

// Of this writer alone: a process that was taken for dead may wake up and go on writing.
std::string TemporaryName(const std::string& path) {
  uint64_t random = 0;
  if (getrandom(&random, sizeof(random), 0) != sizeof(random))
    random = static_cast<uint64_t>(getpid());
  return absl::StrCat(path, ".partial-", absl::Hex(random, absl::kZeroPad16));
}

const char* SafetensorsType(DType dtype) {
  switch (dtype) {
    case kFloat32:
      return "F32";
    case kInt32:
      return "I32";
    case kInt64:
      return "I64";
    case kUInt8:
      return "U8";
    default:
      return "";
  }
}

// Direct writes go past the system's cache: they take 40% less processor time of a save, and leave
// the cache to what is read. False if they stay as they were (a file system that has none).
bool SetDirect(int fd, bool direct) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || ((flags & O_DIRECT) != 0) == direct) return false;
  return fcntl(fd, F_SETFL, flags ^ O_DIRECT) == 0;
}

absl::Status WriteAll(int fd, const char* data, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    // A file system that says it only now, or whose blocks are larger.
    if (n < 0 && (errno == EINVAL || errno == EOPNOTSUPP) && SetDirect(fd, false)) continue;
    if (n < 0) return ErrnoToStatus(errno, "write", path);
    WorkProgress::Moved(static_cast<uint64_t>(n));
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(
    const std::string& path, std::vector<TensorEntry> entries,
    const std::map<std::string, std::string>& metadata) {
  // Ordered, so that the same state gives the same bytes.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorEntry& entry : entries) {
    uint64_t size = ElementSize(entry.dtype);
    for (const int64_t dim : entry.shape) size *= static_cast<uint64_t>(dim);
    header[entry.name] = {{"dtype", SafetensorsType(entry.dtype)},
                          {"shape", entry.shape},
                          {"data_offsets", {offset, offset + size}}};
    offset += size;
  }
  // A name that is no UTF-8 must not throw; protobuf has refused such names before.
  std::string json = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const uint64_t json_size = json.size();

  const std::string temporary = TemporaryName(path);
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, "create", temporary);
  (void)SetDirect(fd.get(), true);
  SafetensorsWriter writer(path, temporary, std::move(fd));
  writer.buffer_.reset(static_cast<char*>(std::aligned_alloc(kBlockBytes, kBufferBytes)));
  if (writer.buffer_ == nullptr)
    return absl::ResourceExhaustedError(absl::StrCat("no memory to write ", path));
  writer.expected_ = sizeof(json_size) + json_size + offset;
  MU_RETURN_IF_ERROR(writer.Append(&json_size, sizeof(json_size)));
  MU_RETURN_IF_ERROR(writer.Append(json.data(), json.size()));
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_.valid()) unlink(temporary_.c_str());
}

absl::Status SafetensorsWriter::Append(const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const size_t some = std::min(size, kMostRoom);
    MU_ASSIGN_OR_RETURN(char* const room, Room(some));
    std::memcpy(room, bytes, some);
    Wrote(some);
    bytes += some;
    size -= some;
  }
  return absl::OkStatus();
}

absl::StatusOr<char*> SafetensorsWriter::Room(size_t size) {
  if (kBufferBytes - used_ < size) MU_RETURN_IF_ERROR(Flush(used_ / kBlockBytes * kBlockBytes));
  return buffer_.get() + used_;
}

absl::Status SafetensorsWriter::Flush(size_t size) {
  if (size == 0) return absl::OkStatus();
  crc_ = ExtendCrc32c(crc_, buffer_.get(), size);
  MU_RETURN_IF_ERROR(WriteAll(fd_.get(), buffer_.get(), size, path_));
  written_ += size;
  used_ -= size;
  std::memmove(buffer_.get(), buffer_.get() + size, used_);
  if (written_ - asked_ < kWriteOutBytes) return absl::OkStatus();
  // What the system cannot do here, fsync does. But it reports a failed write only once.
  const auto sync = [&](uint64_t begin, uint64_t end, unsigned flags) -> absl::Status {
    if (sync_file_range(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(end - begin),
                        flags) == 0 ||
        (errno != EIO && errno != ENOSPC && errno != EDQUOT))
      return absl::OkStatus();
    return ErrnoToStatus(errno, "write", path_);
  };
  MU_RETURN_IF_ERROR(sync(asked_, written_, SYNC_FILE_RANGE_WRITE));
  if (asked_ > waited_) {
    MU_RETURN_IF_ERROR(
        sync(waited_, asked_,
             SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER));
  }
  WorkProgress::Moved(asked_ - waited_);
  waited_ = std::exchange(asked_, written_);
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Sync() {
  MU_RETURN_IF_ERROR(Flush(used_ / kBlockBytes * kBlockBytes));
  if (used_ > 0) {
    (void)SetDirect(fd_.get(), false);  // the file's end is no whole block
    MU_RETURN_IF_ERROR(Flush(used_));
  }
  if (written_ != expected_) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", written_, " bytes were written, ", expected_, " announced"));
  }
  if (fsync(fd_.get()) != 0) return ErrnoToStatus(errno, "sync", path_);
  WorkProgress::Moved(written_ - waited_);
  synced_ = true;
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Finish() {
  if (!synced_) MU_RETURN_IF_ERROR(Sync());
  MU_RETURN_IF_ERROR(RenameFile(temporary_, path_));
  WorkProgress::Moved(1);
  fd_.Reset();
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace mu
