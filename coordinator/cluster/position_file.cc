#include "coordinator/cluster/position_file.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/env/file.h"

namespace mu {

absl::Status WritePositionFile(const std::string& directory, const pb::JobPositionProto& position) {
  pb::JobPositionProto kept;
  *kept.mutable_functions() = position.functions();
  *kept.mutable_leases() = position.leases();
  std::string bytes;
  if (!kept.SerializeToString(&bytes))
    return absl::ResourceExhaustedError("the job's position is larger than 2 GB");
  const uint32_t sum = Crc32c(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&sum), sizeof(sum));
  return WriteFileAtomic(JoinPath(directory, kPositionFile), bytes);
}

absl::StatusOr<pb::JobPositionProto> ReadPositionFile(const std::string& directory) {
  const std::string path = JoinPath(directory, kPositionFile);
  const absl::StatusOr<std::string> read = ReadFile(path);
  if (absl::IsNotFound(read.status())) {
    return absl::DataLossError(
        absl::StrCat(path, " is missing, which its manifest needs; use another checkpoint"));
  }
  MU_RETURN_IF_ERROR(read.status());
  const std::string& bytes = *read;
  uint32_t sum = 0;
  pb::JobPositionProto position;
  const size_t size = bytes.size() < sizeof(sum) ? 0 : bytes.size() - sizeof(sum);
  if (size > 0) std::memcpy(&sum, bytes.data() + size, sizeof(sum));
  if (size == 0 || sum != Crc32c(bytes.data(), size) ||
      !position.ParseFromArray(bytes.data(), static_cast<int>(size))) {
    return absl::DataLossError(absl::StrCat(
        path,
        " is damaged: its bytes do not have the CRC32C at their end; use another checkpoint"));
  }
  return position;
}

}  // namespace mu
