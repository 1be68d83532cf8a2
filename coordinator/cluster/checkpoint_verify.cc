#include "coordinator/cluster/checkpoint_verify.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/cannot_read.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"

namespace mu {
namespace {

constexpr size_t kChunk = size_t{1} << 20;

absl::StatusOr<uint32_t> CrcOf(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoToStatus(errno, "open", path);
  std::vector<char> chunk(kChunk);
  uint32_t crc = 0;
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoToStatus(errno, "read", path);
    if (got == 0) return crc;
    crc = ExtendCrc32c(crc, chunk.data(), static_cast<size_t>(got));
  }
}

// Whether this process may read the file. Its size can be seen without that.
absl::Status ReadFirstByte(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return ErrnoToStatus(errno, "open", path);
  char byte;
  ssize_t got;
  do {
    got = ::read(fd.get(), &byte, 1);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? ErrnoToStatus(errno, "read", path) : absl::OkStatus();
}

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(
      absl::StrCat(path, " is missing, which its manifest names; use another checkpoint"));
}

}  // namespace

absl::Status CheckSizes(const std::string& directory, const pb::CheckpointProto& manifest) {
  for (const pb::CheckpointFileProto& file : manifest.files()) {
    const std::string path = JoinPath(directory, file.name());
    const absl::StatusOr<uint64_t> size = FileSize(path);
    if (absl::IsNotFound(size.status())) return Missing(path);
    if (!size.ok()) return CannotRead(size.status());
    if (*size != file.bytes()) {
      return absl::DataLossError(absl::StrCat(path, " has ", *size, " bytes, its manifest says ",
                                              file.bytes(), "; use another checkpoint"));
    }
    const absl::Status read = ReadFirstByte(path);
    if (absl::IsNotFound(read)) return Missing(path);
    if (!read.ok()) return CannotRead(read);
  }
  return absl::OkStatus();
}

absl::Status CheckManifestAndSizes(const std::string& directory) {
  MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(directory));
  return CheckSizes(directory, manifest);
}

bool IsDamage(const absl::Status& status) {
  return absl::IsDataLoss(status) || absl::IsNotFound(status);
}

std::string NewestBefore(const std::string& directory) {
  const std::string path = AbsolutePath(directory).value_or(directory);
  const auto listed = ListCheckpoints(DirectoryOf(path));
  if (!listed.ok()) return "";
  bool before = false;
  for (auto it = listed->rbegin(); it != listed->rend(); ++it) {
    if (before && CheckManifestAndSizes(*it).ok()) return *it;
    before = before || BaseName(*it) == BaseName(path);
  }
  return "";
}

absl::Status VerifyCheckpoint(const std::string& directory, const pb::CheckpointProto& manifest) {
  MU_RETURN_IF_ERROR(CheckSizes(directory, manifest));
  for (const pb::CheckpointFileProto& file : manifest.files()) {
    const std::string path = JoinPath(directory, file.name());
    MU_ASSIGN_OR_RETURN(const uint32_t crc, CrcOf(path));
    if (crc != file.crc32c()) {
      return absl::DataLossError(
          absl::StrFormat("%s is damaged: its CRC32C is %08x, its manifest says %08x; use "
                          "another checkpoint",
                          path, crc, file.crc32c()));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
