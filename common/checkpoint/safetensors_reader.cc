#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/status.h"
#include "common/checkpoint/safetensors.h"
#include "common/env/file.h"
#include "common/env/work_progress.h"

namespace mu {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 30;
constexpr size_t kMostReadBytes = 4 << 20;

DType TypeOf(const std::string& name) {
  if (name == "F32") return kFloat32;
  if (name == "I32") return kInt32;
  if (name == "I64") return kInt64;
  if (name == "U8") return kUInt8;
  return muster::DTYPE_INVALID;
}

absl::Status Bad(const std::string& path, absl::string_view problem) {
  return absl::DataLossError(absl::StrCat(path, " is no sound safetensors file: ", problem));
}

// A non-negative integer that fits int64; false otherwise.
bool AsSize(const Json& json, uint64_t* value) {
  if (!json.is_number_unsigned()) return false;
  *value = json.get<uint64_t>();
  return *value < (uint64_t{1} << 62);
}

bool ParseEntry(const Json& json, TensorEntry* entry) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return false;
  }
  const Json& shape = json["shape"];
  const Json& offsets = json["data_offsets"];
  if (!json["dtype"].is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    return false;
  entry->dtype = TypeOf(json["dtype"].get<std::string>());
  if (entry->dtype == muster::DTYPE_INVALID) return false;
  if (!AsSize(offsets[0], &entry->begin) || !AsSize(offsets[1], &entry->end) ||
      entry->end < entry->begin)
    return false;
  unsigned __int128 bytes = ElementSize(entry->dtype);
  for (const Json& dim : shape) {
    uint64_t size;
    if (!AsSize(dim, &size)) return false;
    entry->shape.push_back(static_cast<int64_t>(size));
    bytes *= size;
    if (bytes > (uint64_t{1} << 62)) return false;
  }
  return bytes == entry->end - entry->begin;
}

absl::Status ReadAt(int fd, uint64_t offset, void* out, size_t size, const std::string& path) {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    // In pieces, so that a slow disk is seen to make progress.
    const ssize_t n = pread(fd, to, std::min(size, kMostReadBytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(ErrnoToStatus(errno, "read", path));
    if (n == 0) return Bad(path, "it ends too early");
    WorkProgress::Moved(static_cast<uint64_t>(n));
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SafetensorsReader> SafetensorsReader::Open(const std::string& path) {
  SafetensorsReader reader;
  reader.path_ = path;
  reader.fd_.Reset(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!reader.fd_.valid()) return CannotRead(ErrnoToStatus(errno, "open", path));
  struct stat info;
  if (fstat(reader.fd_.get(), &info) != 0) return CannotRead(ErrnoToStatus(errno, "look at", path));
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  uint64_t header_size = 0;
  if (size < sizeof(header_size)) return Bad(path, "it is too short");
  MU_RETURN_IF_ERROR(ReadAt(reader.fd_.get(), 0, &header_size, sizeof(header_size), path));
  if (header_size > kMostHeaderBytes || header_size > size - sizeof(header_size)) {
    return Bad(path, "its header's length is impossible");
  }
  std::string json(header_size, '\0');
  MU_RETURN_IF_ERROR(ReadAt(reader.fd_.get(), sizeof(header_size), json.data(), json.size(), path));
  reader.data_begin_ = sizeof(header_size) + header_size;
  reader.file_bytes_ = size;
  MU_RETURN_IF_ERROR(reader.ParseHeader(json, size - reader.data_begin_));
  return reader;
}

absl::Status SafetensorsReader::ParseHeader(absl::string_view text, uint64_t data_bytes) {
  const Json header = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!header.is_object()) return Bad(path_, "its header is no JSON object");
  for (const auto& item : header.items()) {
    if (item.key() == "__metadata__") continue;
    TensorEntry entry;
    entry.name = item.key();
    if (!ParseEntry(item.value(), &entry) || entry.end > data_bytes) {
      return Bad(path_, absl::StrCat("its header does not describe '", entry.name, "' properly"));
    }
    entries_.push_back(std::move(entry));
  }
  std::sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t position = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].begin != position) return Bad(path_, "its tensors overlap or leave holes");
    position = entries_[i].end;
    by_name_[entries_[i].name] = i;
  }
  if (position != data_bytes) return Bad(path_, "its tensors do not fill it");
  return absl::OkStatus();
}

const TensorEntry* SafetensorsReader::Find(const std::string& name) const {
  const auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : &entries_[it->second];
}

absl::Status SafetensorsReader::Read(const TensorEntry& entry, uint64_t offset, void* out,
                                     size_t size) const {
  if (offset > entry.end - entry.begin || size > entry.end - entry.begin - offset) {
    return Bad(path_, absl::StrCat("'", entry.name, "' is shorter than expected"));
  }
  return ReadAt(fd_.get(), data_begin_ + entry.begin + offset, out, size, path_);
}

absl::Status SafetensorsReader::ReadRaw(uint64_t offset, void* out, size_t size) const {
  return ReadAt(fd_.get(), offset, out, size, path_);
}

}  // namespace mu
