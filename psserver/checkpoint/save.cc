#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/checkpoint/safetensors.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "psserver/checkpoint/checkpoint.h"
#include "psserver/core/file_memory.h"

namespace mu {
namespace {

// Copied at a time: bounds how long a save holds a partition's lock.
constexpr size_t kRowsAtOnce = 1024;
constexpr size_t kBytesAtOnce = 256 << 10;

// The bytes of one tensor, produced when its turn has come.
struct Source {
  TensorEntry entry;
  std::function<absl::Status(SafetensorsWriter*)> write;
};

class FileWriter {
 public:
  FileWriter(StoreCut* cut, const CutMemory& memory, const ReadStore& read)
      : cut_(cut), memory_(&memory), read_(read) {}

  void Gather() {
    memory_.ForEach([this](const std::vector<AppliedSteps::Range>& steps) { AddSteps(steps); });
    for (const StoredVariable* variable : cut_->store().SortedVariables()) {
      for (uint32_t p = 0; p < variable->partitions.size(); ++p) {
        if (variable->partitions[p] != nullptr) AddVariable(*variable, p);
      }
    }
    for (const StoredTable* table : cut_->store().SortedTables()) {
      for (uint32_t p = 0; p < table->partitions.size(); ++p) {
        if (table->partitions[p] != nullptr) AddTable(*table, p);
      }
    }
    // Elements of 8 bytes first, so that every tensor is aligned to its elements without holes.
    std::stable_sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) {
      return ElementSize(a.entry.dtype) > ElementSize(b.entry.dtype);
    });
  }

  absl::StatusOr<SafetensorsWriter> Write(const std::string& path) {
    std::vector<TensorEntry> entries;
    for (const Source& source : sources_) entries.push_back(source.entry);
    MU_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                        SafetensorsWriter::Create(path, std::move(entries),
                                                  {{"format", "muster"}, {"format_version", "1"}}));
    for (const Source& source : sources_) {
      MU_RETURN_IF_ERROR(read_(nullptr));
      MU_RETURN_IF_ERROR(source.write(&writer));
    }
    return writer;
  }

  uint64_t updates() const { return updates_; }

 private:
  void AddInts(const std::string& name, std::vector<int64_t> shape, std::vector<int64_t> values) {
    sources_.push_back(
        {{name, kInt64, std::move(shape)}, [values = std::move(values)](SafetensorsWriter* writer) {
           return writer->Append(values.data(), values.size() * sizeof(int64_t));
         }});
  }

  void AddSteps(const std::vector<AppliedSteps::Range>& ranges) {
    std::vector<int64_t> values;
    for (const AppliedSteps::Range& range : ranges) {
      for (const uint64_t number : {range.function, uint64_t{range.part}, range.begin, range.end}) {
        values.push_back(static_cast<int64_t>(number));
      }
    }
    AddInts(MemoryTensorName(memories_++), {static_cast<int64_t>(ranges.size()), 4},
            std::move(values));
  }

  void AddHistory(const PartitionKey& key, const std::function<std::string(const char*)>& name,
                  uint64_t updates) {
    updates_ += updates;
    AddInts(name("updates"), {}, {static_cast<int64_t>(updates)});
    std::vector<int64_t> numbers = memory_.NumbersOf(key);
    if (numbers.empty()) return;
    const int64_t count = static_cast<int64_t>(numbers.size());
    AddInts(name("inherits"), {count}, std::move(numbers));
  }

  void AddVariable(const StoredVariable& variable, uint32_t p) {
    const VariableDefinition& definition = *variable.definition;
    VariablePartition* const partition = variable.partitions[p].get();
    const std::string& name = definition.proto.name();
    AddHistory(
        {PartitionKey::Kind::kVariable, definition.proto.id(), p},
        [&](const char* part) { return VariableTensorName(name, p, part); },
        partition->CutUpdates());
    const size_t parts = definition.parts();
    for (size_t part = 0; part < parts; ++part) {
      const std::string part_name = part == 0 ? "value" : SlotPart(part - 1);
      Source source{{VariableTensorName(name, p, part_name), definition.proto.dtype(),
                     VariablePartShape(definition, p, part)},
                    nullptr};
      source.write = [this, partition, part,
                      last = part + 1 == parts](SafetensorsWriter* writer) -> absl::Status {
        const size_t bytes = partition->PartBytes(part);
        for (size_t offset = 0; offset < bytes;) {
          const size_t some = std::min(bytes - offset, kBytesAtOnce);
          MU_ASSIGN_OR_RETURN(char* const room, writer->Room(some));
          MU_RETURN_IF_ERROR(read_([&] { partition->ReadCut(part, offset, some, room); }));
          writer->Wrote(some);
          offset += some;
        }
        return last ? read_([&] { partition->EndCut(); }) : absl::OkStatus();
      };
      sources_.push_back(std::move(source));
    }
  }

  // Gives `read` room for rows of `row_bytes` until it says that there are no more.
  absl::Status WriteRows(SafetensorsWriter* writer, size_t row_bytes,
                         const std::function<size_t(size_t most, char* out)>& read) {
    const size_t most = std::min(kRowsAtOnce, kBytesAtOnce / row_bytes);
    if (most == 0) return WriteWideRows(writer, row_bytes, read);
    while (true) {
      MU_ASSIGN_OR_RETURN(char* const room, writer->Room(most * row_bytes));
      size_t rows = 0;
      MU_RETURN_IF_ERROR(read_([&] { rows = read(most, room); }));
      if (rows == 0) return absl::OkStatus();
      writer->Wrote(rows * row_bytes);
    }
  }
  absl::Status WriteWideRows(SafetensorsWriter* writer, size_t row_bytes,
                             const std::function<size_t(size_t most, char* out)>& read) {
    std::vector<char> row(row_bytes);
    while (true) {
      size_t rows = 0;
      MU_RETURN_IF_ERROR(read_([&] { rows = read(1, row.data()); }));
      if (rows == 0) return absl::OkStatus();
      MU_RETURN_IF_ERROR(writer->Append(row.data(), row.size()));
    }
  }

  void AddTable(const StoredTable& table, uint32_t p) {
    const TableDefinition& definition = *table.definition;
    TablePartition* const partition = table.partitions[p].get();
    const std::string& name = definition.proto.name();
    const int64_t rows = static_cast<int64_t>(partition->CutRows());
    AddHistory(
        {PartitionKey::Kind::kTable, definition.proto.id(), p},
        [&](const char* part) { return TableTensorName(name, p, part); }, partition->CutUpdates());
    sources_.push_back({{TableTensorName(name, p, "ids"), kInt64, {rows}},
                        [this, partition](SafetensorsWriter* writer) {
                          uint64_t position = 0;
                          return WriteRows(writer, sizeof(int64_t), [&](size_t most, char* out) {
                            return partition->ReadCutIds(&position, most,
                                                         reinterpret_cast<int64_t*>(out));
                          });
                        }});
    const size_t parts = definition.parts();
    for (size_t part = 0; part < parts; ++part) {
      const std::string part_name = part == 0 ? "values" : SlotPart(part - 1);
      const TableDefinition::Columns columns = definition.ColumnsOf(part);
      const bool last = part + 1 == parts;
      sources_.push_back(
          {{TableTensorName(name, p, part_name),
            kFloat32,
            {rows, static_cast<int64_t>(columns.count)}},
           [this, partition, columns, last](SafetensorsWriter* writer) -> absl::Status {
             uint64_t position = 0;
             MU_RETURN_IF_ERROR(
                 WriteRows(writer, columns.count * sizeof(float), [&](size_t most, char* out) {
                   return partition->ReadCut(&position, columns.begin, columns.count, most, last,
                                             reinterpret_cast<float*>(out));
                 }));
             return last ? read_([&] { partition->EndCut(); }) : absl::OkStatus();
           }});
    }
  }

  StoreCut* const cut_;
  const WrittenMemory memory_;
  const ReadStore& read_;
  std::vector<Source> sources_;
  size_t memories_ = 0;
  uint64_t updates_ = 0;
};

}  // namespace

std::vector<int64_t> VariablePartShape(const VariableDefinition& definition, uint32_t partition,
                                       size_t part) {
  const int64_t rows = definition.RowsOf(partition);
  if (part > 0) {
    const int64_t width = static_cast<int64_t>(definition.optimizer.slots()[part - 1].width);
    if (width != definition.layout.elements_per_row) return {rows, width};
  }
  std::vector<int64_t> shape(definition.proto.shape().dims().begin(),
                             definition.proto.shape().dims().end());
  if (!shape.empty()) shape[0] = rows;
  return shape;
}

absl::Status CheckFileName(const std::string& file) {
  // The system's calls end a name at a zero byte: behind it anything may hide.
  const bool is_name = !file.empty() && file != "." && file != ".." &&
                       file.find('/') == std::string::npos && file.find('\0') == std::string::npos;
  if (is_name) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(file), "' is no name of a checkpoint's file"));
}

absl::StatusOr<SavedFile> SaveCheckpointFile(StoreCut* cut, const CutMemory& memory,
                                             const std::string& directory, const std::string& file,
                                             const ReadStore& read) {
  MU_RETURN_IF_ERROR(CheckFileName(file));
  MU_RETURN_IF_ERROR(MakeDirectories(directory));
  FileWriter files(cut, memory, read);
  MU_RETURN_IF_ERROR(read([&] { files.Gather(); }));
  MU_ASSIGN_OR_RETURN(SafetensorsWriter writer, files.Write(JoinPath(directory, file)));
  MU_RETURN_IF_ERROR(read([&] { cut->End(); }));
  MU_RETURN_IF_ERROR(writer.Sync());
  MU_RETURN_IF_ERROR(read(nullptr));
  MU_RETURN_IF_ERROR(writer.Finish());
  SavedFile saved;
  saved.file.set_name(file);
  saved.file.set_bytes(writer.bytes());
  saved.file.set_crc32c(writer.crc32c());
  saved.updates = files.updates();
  return saved;
}

}  // namespace mu
