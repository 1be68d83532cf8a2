#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/env/file.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/checkpoint/safetensors.h"

namespace mu {
namespace {

// Rows copied at a time: bounds both the memory of a save and how long it holds a partition's lock.
constexpr size_t kRowsAtOnce = 4096;

// The bytes of one tensor, produced when its turn has come.
struct Source {
  TensorEntry entry;
  std::function<absl::Status(SafetensorsWriter*)> write;
};

void AddVariable(const StoredVariable& variable, uint32_t p, std::vector<Source>* sources) {
  const VariableDefinition& definition = *variable.definition;
  const VariablePartition* partition = variable.partitions[p].get();
  std::vector<int64_t> shape(definition.proto.shape().dims().begin(), definition.proto.shape().dims().end());
  if (!shape.empty()) shape[0] = definition.RowsOf(p);
  const auto add = [&](const std::string& part, std::function<void(char*)> read) {
    Source source{{VariableTensorName(definition.proto.name(), p, part), definition.proto.dtype(), shape}, nullptr};
    source.write = [partition, read = std::move(read)](SafetensorsWriter* writer) {
      std::vector<char> copy(partition->value_bytes());
      read(copy.data());
      return writer->Append(copy.data(), copy.size());
    };
    sources->push_back(std::move(source));
  };
  add("value", [partition](char* out) { partition->Read(out); });
  for (uint32_t s = 0; s < definition.optimizer.slots(); ++s) {
    add(SlotPart(s), [partition, s](char* out) { partition->ReadSlot(s, reinterpret_cast<float*>(out)); });
  }
}

void AddTable(const StoredTable& table, uint32_t p, std::vector<Source>* sources) {
  const TableDefinition& definition = *table.definition;
  const TablePartition* partition = table.partitions[p].get();
  const std::string& name = definition.proto.name();
  const auto ids = std::make_shared<const std::vector<int64_t>>(partition->Ids());
  const int64_t rows = static_cast<int64_t>(ids->size());
  const int64_t dim = static_cast<int64_t>(definition.dim);
  sources->push_back({{TableTensorName(name, p, "ids"), kInt64, {rows}}, [ids](SafetensorsWriter* writer) {
                        return writer->Append(ids->data(), ids->size() * sizeof(int64_t));
                      }});
  for (uint32_t part = 0; part <= definition.optimizer.slots(); ++part) {
    const std::string part_name = part == 0 ? "values" : SlotPart(part - 1);
    sources->push_back(
        {{TableTensorName(name, p, part_name), kFloat32, {rows, dim}},
         [ids, partition, part, columns = definition.dim](SafetensorsWriter* writer) -> absl::Status {
           std::vector<float> copy(std::min(ids->size(), kRowsAtOnce) * columns);
           for (size_t begin = 0; begin < ids->size(); begin += kRowsAtOnce) {
             const auto some = absl::MakeConstSpan(*ids).subspan(begin, kRowsAtOnce);
             partition->CopyColumns(some, part * columns, columns, copy.data());
             MU_RETURN_IF_ERROR(writer->Append(copy.data(), some.size() * columns * sizeof(float)));
           }
           return absl::OkStatus();
         }});
  }
}

}  // namespace

std::string VariableTensorName(const std::string& name, uint32_t partition, const std::string& part) {
  return absl::StrCat("variables/", name, "/", partition, "/", part);
}
std::string TableTensorName(const std::string& name, uint32_t partition, const std::string& part) {
  return absl::StrCat("tables/", name, "/", partition, "/", part);
}
std::string SlotPart(uint32_t slot) { return absl::StrCat("slot_", slot); }

absl::StatusOr<pb::CheckpointFileProto> SaveCheckpointFile(const StoreDirectory& store, const std::string& directory,
                                                           const std::string& file) {
  if (file.empty() || file == "." || file == ".." || absl::StrContains(file, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("'", file, "' is no name of a checkpoint's file"));
  }
  MU_RETURN_IF_ERROR(MakeDirectories(directory));
  std::vector<Source> sources;
  for (const StoredVariable* variable : store.SortedVariables()) {
    for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
      if (variable->partitions[p] != nullptr) AddVariable(*variable, p, &sources);
    }
  }
  for (const StoredTable* table : store.SortedTables()) {
    for (uint32_t p = 0; p < table->partitions.size(); ++p) {
      if (table->partitions[p] != nullptr) AddTable(*table, p, &sources);
    }
  }
  // Elements of 8 bytes first, so that every tensor is aligned to its elements without holes.
  std::stable_sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) {
    return ElementSize(a.entry.dtype) > ElementSize(b.entry.dtype);
  });
  std::vector<TensorEntry> entries;
  for (const Source& source : sources) entries.push_back(source.entry);
  MU_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                      SafetensorsWriter::Create(JoinPath(directory, file), std::move(entries),
                                                {{"format", "muster"}, {"format_version", "1"}}));
  for (const Source& source : sources) MU_RETURN_IF_ERROR(source.write(&writer));
  MU_RETURN_IF_ERROR(writer.Finish());
  pb::CheckpointFileProto result;
  result.set_name(file);
  result.set_bytes(writer.bytes());
  result.set_crc32c(writer.crc32c());
  return result;
}

}  // namespace mu
