#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "common/env/unique_fd.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/checkpoint/safetensors.h"

namespace mu {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kRowsAtOnce = 4096;

absl::Status VerifyFile(const std::string& path, const pb::CheckpointFileProto& file) {
  MU_ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  if (size != file.bytes()) {
    return absl::DataLossError(
        absl::StrCat(path, " has ", size, " bytes, its checkpoint says ", file.bytes(), "; it was cut short or replaced"));
  }
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, "open", path);
  std::vector<char> buffer(kReadBytes);
  uint32_t crc = 0;
  while (true) {
    const ssize_t n = read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, "read", path);
    if (n == 0) break;
    crc = ExtendCrc32c(crc, buffer.data(), static_cast<size_t>(n));
  }
  if (crc == file.crc32c()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, " is damaged: its CRC32C is not the one of its checkpoint"));
}

// All files of a checkpoint as one.
class Loader {
 public:
  absl::Status Open(const std::string& directory, const CheckpointFiles& files) {
    for (const pb::CheckpointFileProto& file : files) {
      MU_ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(JoinPath(directory, file.name())));
      readers_.push_back(std::move(reader));
      if (!names_.empty()) names_ += ", ";
      names_ += file.name();
    }
    return absl::OkStatus();
  }

  absl::Status LoadVariable(const VariableDefinition& definition, uint32_t p, VariablePartition* partition) const {
    const std::string& name = definition.proto.name();
    std::vector<int64_t> shape(definition.proto.shape().dims().begin(), definition.proto.shape().dims().end());
    if (!shape.empty()) shape[0] = definition.RowsOf(p);
    std::vector<char> bytes(partition->value_bytes());
    MU_RETURN_IF_ERROR(ReadWhole(VariableTensorName(name, p, "value"), definition.proto.dtype(), shape, bytes.data()));
    partition->Assign(bytes.data());
    for (uint32_t s = 0; s < definition.optimizer.slots(); ++s) {
      MU_RETURN_IF_ERROR(ReadWhole(VariableTensorName(name, p, SlotPart(s)), kFloat32, shape, bytes.data()));
      partition->SetSlot(s, reinterpret_cast<const float*>(bytes.data()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> LoadTable(const TableDefinition& definition, uint32_t p, TablePartition* partition) const {
    const std::string& name = definition.proto.name();
    const std::string ids_name = TableTensorName(name, p, "ids");
    MU_ASSIGN_OR_RETURN(const Found found, Find(ids_name));
    const int64_t rows = found.entry->shape.size() == 1 ? found.entry->shape[0] : -1;
    MU_RETURN_IF_ERROR(Expect(*found.entry, kInt64, {rows}));
    std::vector<int64_t> ids(static_cast<size_t>(rows));
    MU_RETURN_IF_ERROR(found.reader->Read(*found.entry, 0, ids.data(), ids.size() * sizeof(int64_t)));
    for (const int64_t id : ids) {
      if (!partition->Holds(id)) {
        return absl::DataLossError(absl::StrCat("the checkpoint's ", ids_name, " holds id ", id,
                                                ", which does not belong there; was the table's size or number of "
                                                "partitions another one?"));
      }
    }
    for (uint32_t part = 0; part <= definition.optimizer.slots(); ++part) {
      const std::string part_name = TableTensorName(name, p, part == 0 ? "values" : SlotPart(part - 1));
      MU_ASSIGN_OR_RETURN(const Found values, Find(part_name));
      MU_RETURN_IF_ERROR(Expect(*values.entry, kFloat32, {rows, static_cast<int64_t>(definition.dim)}));
      std::vector<float> buffer(std::min(ids.size(), kRowsAtOnce) * definition.dim);
      for (size_t begin = 0; begin < ids.size(); begin += kRowsAtOnce) {
        const auto some = absl::MakeConstSpan(ids).subspan(begin, kRowsAtOnce);
        const size_t row_bytes = definition.dim * sizeof(float);
        MU_RETURN_IF_ERROR(
            values.reader->Read(*values.entry, begin * row_bytes, buffer.data(), some.size() * row_bytes));
        partition->SetColumns(some, part * definition.dim, definition.dim, buffer.data());
      }
    }
    return ids.size();
  }

 private:
  struct Found {
    const SafetensorsReader* reader;
    const TensorEntry* entry;
  };

  absl::StatusOr<Found> Find(const std::string& name) const {
    for (const SafetensorsReader& reader : readers_) {
      if (const TensorEntry* entry = reader.Find(name); entry != nullptr) return Found{&reader, entry};
    }
    return absl::NotFoundError(absl::StrCat("no file of the checkpoint has '", name, "' (files: ", names_,
                                            "); is it a checkpoint of another model, or does a file miss?"));
  }

  static absl::Status Expect(const TensorEntry& entry, DType dtype, const std::vector<int64_t>& shape) {
    if (entry.dtype == dtype && entry.shape == shape) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint's '", entry.name, "' has another type or shape than the model's"));
  }

  absl::Status ReadWhole(const std::string& name, DType dtype, const std::vector<int64_t>& shape, char* out) const {
    MU_ASSIGN_OR_RETURN(const Found found, Find(name));
    MU_RETURN_IF_ERROR(Expect(*found.entry, dtype, shape));
    return found.reader->Read(*found.entry, 0, out, found.entry->end - found.entry->begin);
  }

  std::vector<SafetensorsReader> readers_;
  std::string names_;
};

}  // namespace

absl::Status VerifyCheckpointFiles(const std::string& directory, const CheckpointFiles& files) {
  for (const pb::CheckpointFileProto& file : files) {
    if (file.name().empty() || absl::StrContains(file.name(), '/')) {
      return absl::InvalidArgumentError(absl::StrCat("'", file.name(), "' is no name of a checkpoint's file"));
    }
    MU_RETURN_IF_ERROR(VerifyFile(JoinPath(directory, file.name()), file));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> LoadCheckpoint(const StoreDirectory& store, const std::string& directory,
                                        const CheckpointFiles& files) {
  Loader loader;
  MU_RETURN_IF_ERROR(loader.Open(directory, files));
  uint64_t rows = 0;
  for (const StoredVariable* variable : store.SortedVariables()) {
    for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
      if (variable->partitions[p] == nullptr) continue;
      MU_RETURN_IF_ERROR(loader.LoadVariable(*variable->definition, p, variable->partitions[p].get()));
    }
  }
  for (const StoredTable* table : store.SortedTables()) {
    for (uint32_t p = 0; p < table->partitions.size(); ++p) {
      if (table->partitions[p] == nullptr) continue;
      MU_ASSIGN_OR_RETURN(const uint64_t loaded, loader.LoadTable(*table->definition, p, table->partitions[p].get()));
      rows += loaded;
    }
  }
  return rows;
}

}  // namespace mu
