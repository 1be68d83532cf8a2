#include "coordinator/export/checkpoint_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/checkpoint/tensor_names.h"
#include "common/env/file.h"
#include "common/sharding/initializer.h"
#include "common/sharding/partition.h"
#include "common/sharding/routing.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"

namespace mu {
namespace {

// Of a table's rows at a time: large enough that the share of each of 64 partitions is one good
// read.
constexpr uint64_t kTablePieceBytes = 8 << 20;
constexpr uint64_t kVariablePieceBytes = 1 << 20;

absl::string_view Bytes(const void* data, size_t size) {
  return {static_cast<const char*>(data), size};
}

// A table's partition while its rows are read in ascending order.
struct PartitionCursor {
  const SafetensorsReader* file = nullptr;  // null: no row of it was written
  const TensorEntry* ids = nullptr;
  const TensorEntry* values = nullptr;
  uint64_t next = 0;   // of the rows that were written
  uint64_t count = 0;  // of these
};

// A piece of a table: rows [begin, begin + size()), filled from partitions and, where no partition
// has the row, from the initializer.
class TablePiece {
 public:
  TablePiece(const pb::TableProto& table, uint64_t begin, uint64_t rows)
      : table_(table), begin_(begin), filled_(rows), values_(rows * table.dim()) {}

  // Takes the rows of partition `p` that lie in the piece.
  absl::Status TakeRows(uint32_t p, PartitionCursor* cursor) {
    const uint64_t rows = filled_.size(), dim = table_.dim();
    const uint64_t most = std::min(cursor->count - cursor->next, rows / table_.partitions() + 1);
    if (most == 0) return absl::OkStatus();
    ids_.resize(most);
    MU_RETURN_IF_ERROR(cursor->file->Read(*cursor->ids, cursor->next * sizeof(int64_t), ids_.data(),
                                          most * sizeof(int64_t)));
    uint64_t here = 0;
    while (here < most && static_cast<uint64_t>(ids_[here]) < begin_ + rows) {
      const uint64_t id = static_cast<uint64_t>(ids_[here]);
      // Ascending, none twice: each lies in this piece, and in no earlier one.
      if (id % table_.partitions() != p || id < begin_ ||
          (here > 0 && ids_[here] <= ids_[here - 1]))
        return WrongId(*cursor, ids_[here]);
      ++here;
    }
    read_.resize(here * dim);
    MU_RETURN_IF_ERROR(cursor->file->Read(*cursor->values, cursor->next * dim * sizeof(float),
                                          read_.data(), here * dim * sizeof(float)));
    for (uint64_t i = 0; i < here; ++i) {
      const uint64_t row = static_cast<uint64_t>(ids_[i]) - begin_;
      std::copy_n(read_.data() + i * dim, dim, values_.data() + row * dim);
      filled_[row] = true;
    }
    cursor->next += here;
    return absl::OkStatus();
  }

  absl::string_view FillRest(const RowInitializer& initializer) {
    const uint64_t dim = table_.dim();
    for (uint64_t row = 0; row < filled_.size(); ++row) {
      if (!filled_[row]) initializer.FillRow(begin_ + row, values_.data() + row * dim, dim);
    }
    return Bytes(values_.data(), values_.size() * sizeof(float));
  }

 private:
  absl::Status WrongId(const PartitionCursor& cursor, int64_t id) const {
    return absl::DataLossError(absl::StrCat(cursor.file->path(), ": '", cursor.ids->name,
                                            "' holds id ", id, ", which does not belong there"));
  }

  const pb::TableProto& table_;
  const uint64_t begin_;
  std::vector<bool> filled_;
  std::vector<float> values_;
  std::vector<float> read_;
  std::vector<int64_t> ids_;
};

// Initial values of rows [begin, end) of a variable.
absl::Status WriteInitial(const pb::VariableProto& variable, int64_t begin, int64_t end,
                          const ByteSink& sink) {
  const RowInitializer initializer(variable.initializer(), variable.name());
  const size_t columns = static_cast<size_t>(LayoutOf(variable).elements_per_row);
  if (columns == 0) return absl::OkStatus();
  std::vector<float> floats(variable.dtype() == kFloat32 ? columns : 0);
  const std::vector<int64_t> longs(variable.dtype() == kInt64 ? columns : 0, initializer.integer());
  const std::vector<int32_t> ints(variable.dtype() == kInt32 ? columns : 0,
                                  static_cast<int32_t>(initializer.integer()));
  for (int64_t row = begin; row < end; ++row) {
    if (!floats.empty()) initializer.FillRow(static_cast<uint64_t>(row), floats.data(), columns);
    MU_RETURN_IF_ERROR(sink(!floats.empty()  ? Bytes(floats.data(), columns * sizeof(float))
                            : !longs.empty() ? Bytes(longs.data(), columns * sizeof(int64_t))
                                             : Bytes(ints.data(), columns * sizeof(int32_t))));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckpointValues> CheckpointValues::Open(const std::string& directory) {
  MU_ASSIGN_OR_RETURN(pb::CheckpointProto manifest, ReadManifest(directory));
  MU_RETURN_IF_ERROR(VerifyCheckpoint(directory, manifest));
  CheckpointValues values(directory, std::move(manifest));
  for (const pb::CheckpointFileProto& file : values.manifest_.files()) {
    MU_ASSIGN_OR_RETURN(SafetensorsReader reader,
                        SafetensorsReader::Open(JoinPath(directory, file.name())));
    values.files_.push_back(std::move(reader));
  }
  // Definitions that no server would take describe no sizes that can be computed with.
  for (const pb::VariableProto& variable : values.manifest_.variables()) {
    MU_RETURN_IF_ERROR(Annotate(CheckVariable(variable), directory));
    values.values_.push_back(
        {variable.name(), variable.dtype(), Shape(variable.shape()), /*is_table=*/false});
  }
  for (const pb::TableProto& table : values.manifest_.tables()) {
    MU_RETURN_IF_ERROR(Annotate(CheckTable(table), directory));
    values.values_.push_back(
        {table.name(), kFloat32,
         Shape({static_cast<int64_t>(table.rows()), static_cast<int64_t>(table.dim())}),
         /*is_table=*/true});
  }
  return values;
}

const StoredValue* CheckpointValues::Find(absl::string_view name) const {
  const auto it = std::find_if(values_.begin(), values_.end(),
                               [&](const StoredValue& value) { return value.name == name; });
  return it == values_.end() ? nullptr : &*it;
}

const pb::VariableProto* CheckpointValues::FindVariable(absl::string_view name) const {
  const auto& all = manifest_.variables();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.name() == name; });
  return it == all.end() ? nullptr : &*it;
}

const pb::TableProto* CheckpointValues::FindTable(absl::string_view name) const {
  const auto& all = manifest_.tables();
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const auto& t) { return t.name() == name; });
  return it == all.end() ? nullptr : &*it;
}

absl::Status CheckpointValues::Read(const StoredValue& value, const ByteSink& sink) const {
  if (value.is_table) return ReadTable(*FindTable(value.name), sink);
  return ReadVariable(*FindVariable(value.name), sink);
}

CheckpointValues::Found CheckpointValues::FindTensor(const std::string& name) const {
  for (const SafetensorsReader& file : files_) {
    if (const TensorEntry* entry = file.Find(name)) return {&file, entry};
  }
  return {};
}

absl::StatusOr<CheckpointValues::Found> CheckpointValues::FindTensor(
    const std::string& name, DType dtype, const std::vector<int64_t>& shape) const {
  const Found found = FindTensor(name);
  if (found.entry == nullptr)
    return absl::DataLossError(absl::StrCat(directory_, " has no '", name, "'"));
  if (found.entry->dtype == dtype && found.entry->shape == shape) return found;
  return absl::DataLossError(absl::StrCat(found.file->path(), ": '", name,
                                          "' has another type or shape than the manifest says"));
}

absl::Status CheckpointValues::ReadVariable(const pb::VariableProto& variable,
                                            const ByteSink& sink) const {
  const int64_t rows = LayoutOf(variable).rows;
  std::vector<int64_t> shape(variable.shape().dims().begin(), variable.shape().dims().end());
  std::string piece;
  for (int p = 0; p < variable.partition_starts_size(); ++p) {
    const int64_t begin = variable.partition_starts(p);
    const int64_t end =
        p + 1 < variable.partition_starts_size() ? variable.partition_starts(p + 1) : rows;
    const std::string name = VariableTensorName(variable.name(), static_cast<uint32_t>(p), "value");
    // It was created while the files were written.
    if (FindTensor(name).entry == nullptr) {
      MU_RETURN_IF_ERROR(WriteInitial(variable, begin, end, sink));
      continue;
    }
    if (!shape.empty()) shape[0] = end - begin;
    MU_ASSIGN_OR_RETURN(const Found found, FindTensor(name, variable.dtype(), shape));
    const uint64_t size = found.entry->end - found.entry->begin;
    for (uint64_t offset = 0; offset < size; offset += piece.size()) {
      piece.resize(std::min(kVariablePieceBytes, size - offset));
      MU_RETURN_IF_ERROR(found.file->Read(*found.entry, offset, piece.data(), piece.size()));
      MU_RETURN_IF_ERROR(sink(piece));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointValues::ReadTable(const pb::TableProto& table, const ByteSink& sink) const {
  std::vector<PartitionCursor> cursors(table.partitions());
  for (uint32_t p = 0; p < table.partitions(); ++p) {
    const Found ids = FindTensor(TableTensorName(table.name(), p, "ids"));
    if (ids.entry == nullptr) continue;
    const int64_t count = ids.entry->shape.size() == 1 ? ids.entry->shape[0] : -1;
    MU_RETURN_IF_ERROR(FindTensor(ids.entry->name, kInt64, {count}).status());
    MU_ASSIGN_OR_RETURN(const Found values,
                        FindTensor(TableTensorName(table.name(), p, "values"), kFloat32,
                                   {count, static_cast<int64_t>(table.dim())}));
    if (values.file != ids.file)
      return absl::DataLossError(absl::StrCat(values.file->path(), " has the values of '",
                                              ids.entry->name, "', which is in another file"));
    cursors[p] = {ids.file, ids.entry, values.entry, 0, static_cast<uint64_t>(count)};
  }
  const RowInitializer initializer(table.initializer(), table.name());
  const uint64_t step = std::max<uint64_t>(1, kTablePieceBytes / (table.dim() * sizeof(float)));
  for (uint64_t begin = 0; begin < table.rows(); begin += step) {
    TablePiece piece(table, begin, std::min(step, table.rows() - begin));
    for (uint32_t p = 0; p < table.partitions(); ++p)
      MU_RETURN_IF_ERROR(piece.TakeRows(p, &cursors[p]));
    MU_RETURN_IF_ERROR(sink(piece.FillRest(initializer)));
  }
  for (const PartitionCursor& cursor : cursors) {
    if (cursor.next < cursor.count)
      return absl::DataLossError(absl::StrCat(cursor.file->path(), ": '", cursor.ids->name,
                                              "' has ids that are not below the table's ",
                                              table.rows(), " rows"));
  }
  return absl::OkStatus();
}

}  // namespace mu
