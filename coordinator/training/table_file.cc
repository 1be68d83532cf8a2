#include "coordinator/training/table_file.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/all_finite.h"
#include "common/base/status.h"
#include "common/checkpoint/safetensors.h"

namespace mu {
namespace {

constexpr uint64_t kPieceBytes = 4 << 20;

uint64_t RowsInPiece(const EmbeddingTable& table) {
  return std::max<uint64_t>(1, kPieceBytes / (table.proto().dim() * sizeof(float)));
}

std::string IdsName(const EmbeddingTable& table) { return table.name() + ".ids"; }

// The rows that the file has, in its order.
absl::StatusOr<std::vector<int64_t>> IdsOf(const SafetensorsReader& file,
                                           const EmbeddingTable& table, const TensorEntry& values) {
  const int64_t rows = values.shape[0];
  std::vector<int64_t> ids(static_cast<size_t>(rows));
  const TensorEntry* entry = file.Find(IdsName(table));
  if (entry == nullptr) {
    std::iota(ids.begin(), ids.end(), 0);
  } else {
    if (entry->dtype != kInt64 || entry->shape != std::vector<int64_t>{rows}) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.path(), ": \"", entry->name, "\" must be int64 [", rows, "], an id for each row"));
    }
    MU_RETURN_IF_ERROR(file.Read(*entry, 0, ids.data(), ids.size() * sizeof(int64_t)));
  }
  for (const int64_t id : ids) {
    if (id >= 0 && static_cast<uint64_t>(id) < table.proto().rows()) continue;
    return absl::OutOfRangeError(absl::StrCat(file.path(), " has row ", id, ", but table '",
                                              table.name(), "' has rows 0 to ",
                                              table.proto().rows() - 1));
  }
  return ids;
}

// With the number of its first row in the file.
absl::Status ForEachPiece(const SafetensorsReader& file, const EmbeddingTable& table,
                          const TensorEntry& values,
                          absl::FunctionRef<absl::Status(size_t begin, const Tensor& part)> visit) {
  const int64_t dim = table.proto().dim();
  const size_t piece = RowsInPiece(table), all = static_cast<size_t>(values.shape[0]);
  for (size_t begin = 0; begin < all; begin += piece) {
    const size_t rows = std::min(piece, all - begin);
    Tensor part(kFloat32, Shape{static_cast<int64_t>(rows), dim});
    MU_RETURN_IF_ERROR(file.Read(values, begin * static_cast<uint64_t>(dim) * sizeof(float),
                                 part.raw(), part.bytes()));
    MU_RETURN_IF_ERROR(visit(begin, part));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> ExportTable(Coordinator& coordinator, const EmbeddingTable& table,
                                     const std::string& path) {
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  std::vector<int64_t> ids;
  const uint64_t piece = RowsInPiece(table);
  MU_RETURN_IF_ERROR(coordinator.ReadTable(
      table,
      [&](const Coordinator::TableRows& rows) {
        ids.insert(ids.end(), rows.ids.begin(), rows.ids.end());
        return absl::OkStatus();
      },
      static_cast<uint32_t>(std::min<uint64_t>(piece, 1 << 16))));
  const int64_t count = static_cast<int64_t>(ids.size());
  const int64_t dim = table.proto().dim();
  MU_ASSIGN_OR_RETURN(
      SafetensorsWriter file,
      SafetensorsWriter::Create(
          path, {{IdsName(table), kInt64, {count}}, {table.name(), kFloat32, {count, dim}}},
          {{"format", "muster"}}));
  MU_RETURN_IF_ERROR(file.Append(ids.data(), ids.size() * sizeof(int64_t)));
  // By id: a row that was created meanwhile is not in the file, and none is there twice.
  for (size_t begin = 0; begin < ids.size(); begin += piece) {
    const size_t rows = std::min<size_t>(piece, ids.size() - begin);
    MU_ASSIGN_OR_RETURN(const Tensor values,
                        coordinator.ReadRows(table, absl::MakeConstSpan(&ids[begin], rows)));
    MU_RETURN_IF_ERROR(file.Append(values.raw(), values.bytes()));
  }
  MU_RETURN_IF_ERROR(file.Finish());
  return ids.size();
}

absl::StatusOr<uint64_t> ImportTable(Coordinator& coordinator, const EmbeddingTable& table,
                                     const std::string& path) {
  // Only whether the table is the coordinator's, before the file is read.
  MU_RETURN_IF_ERROR(coordinator.AssignRows(table, {}, Tensor()));
  MU_ASSIGN_OR_RETURN(const SafetensorsReader file, SafetensorsReader::Open(path));
  const TensorEntry* values = file.Find(table.name());
  if (values == nullptr)
    return absl::NotFoundError(absl::StrCat(path, " has no tensor \"", table.name(), "\""));
  const int64_t dim = table.proto().dim();
  if (values->dtype != kFloat32 || values->shape.size() != 2 || values->shape[1] != dim) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": \"", table.name(), "\" must be float32 [rows, ", dim, "]"));
  }
  MU_ASSIGN_OR_RETURN(const std::vector<int64_t> ids, IdsOf(file, table, *values));
  std::vector<int64_t> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    return absl::InvalidArgumentError(absl::StrCat(path, " has row ", *twice, " twice"));
  // Twice: nothing of a bad file is assigned.
  MU_RETURN_IF_ERROR(ForEachPiece(file, table, *values, [&](size_t begin, const Tensor& part) {
    if (AllFinite(part.data<float>(), static_cast<size_t>(part.elements())))
      return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": \"", table.name(), "\" holds NaN or infinity in its rows ", begin, " to ",
        begin + static_cast<size_t>(part.shape()[0]) - 1, "; nothing of it was assigned"));
  }));
  MU_RETURN_IF_ERROR(ForEachPiece(file, table, *values, [&](size_t begin, const Tensor& part) {
    const size_t rows = static_cast<size_t>(part.shape()[0]);
    const absl::Status status =
        coordinator.AssignRows(table, absl::MakeConstSpan(&ids[begin], rows), part);
    if (status.ok() || begin == 0) return status;
    return Annotate(status,
                    absl::StrCat("of the ", ids.size(), " rows of ", path, " the first ", begin,
                                 " were assigned, the next ", rows, " perhaps, any others not"));
  }));
  return ids.size();
}

}  // namespace mu
