#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "psserver/checkpoint/safetensors.h"

namespace mu {
namespace {

constexpr size_t kBufferBytes = 1 << 20;
constexpr char kTemporary[] = ".partial";

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

absl::Status WriteAll(int fd, const char* data, size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "write", path);
    data += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsWriter> SafetensorsWriter::Create(const std::string& path, std::vector<TensorEntry> entries,
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

  const std::string temporary = path + kTemporary;
  UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, "create", temporary);
  SafetensorsWriter writer(path, std::move(fd));
  writer.expected_ = sizeof(json_size) + json_size + offset;
  MU_RETURN_IF_ERROR(writer.Append(&json_size, sizeof(json_size)));
  MU_RETURN_IF_ERROR(writer.Append(json.data(), json.size()));
  return writer;
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_.valid()) unlink((path_ + kTemporary).c_str());
}

absl::Status SafetensorsWriter::Append(const void* data, size_t size) {
  crc_ = ExtendCrc32c(crc_, data, size);
  written_ += size;
  if (buffer_.size() + size > kBufferBytes) MU_RETURN_IF_ERROR(Flush());
  if (size >= kBufferBytes) return WriteAll(fd_.get(), static_cast<const char*>(data), size, path_);
  buffer_.append(static_cast<const char*>(data), size);
  return absl::OkStatus();
}

absl::Status SafetensorsWriter::Flush() {
  const absl::Status status = WriteAll(fd_.get(), buffer_.data(), buffer_.size(), path_);
  buffer_.clear();
  return status;
}

absl::Status SafetensorsWriter::Finish() {
  if (written_ != expected_) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", written_, " bytes were written, ", expected_, " announced"));
  }
  MU_RETURN_IF_ERROR(Flush());
  if (fsync(fd_.get()) != 0) return ErrnoToStatus(errno, "sync", path_);
  MU_RETURN_IF_ERROR(RenameFile(path_ + kTemporary, path_));
  fd_.Reset();
  return SyncDirectory(DirectoryOf(path_));
}

}  // namespace mu
