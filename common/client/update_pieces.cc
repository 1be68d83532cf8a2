#include "common/client/update_pieces.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "common/base/status.h"

namespace mu {
namespace {

char* CopyPadded(const void* from, size_t bytes, char* to) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  std::memset(to + bytes, 0, PaddedTo8(bytes) - bytes);
  return to + PaddedTo8(bytes);
}

bool SharesInput(const std::vector<ProductPiece>& pieces, size_t i) {
  return i > 0 && pieces[i - 1].variable == pieces[i].variable;
}

}  // namespace

void ScatterPiece::Describe(pb::VariableUpdate* update) const {
  update->set_variable(variable);
  update->set_partition(partition);
  update->set_kind(kind);
  update->set_rows(static_cast<uint32_t>(rows.size()));
}

char* ScatterPiece::Write(char* to) const {
  char* const end = to + bytes();
  std::memcpy(to, rows.data(), rows.size() * sizeof(int64_t));
  to += rows.size() * sizeof(int64_t);
  for (const size_t origin : origins) {
    std::memcpy(to, from + origin * row_bytes, row_bytes);
    to += row_bytes;
  }
  std::memset(to, 0, static_cast<size_t>(end - to));
  return end;
}

absl::Status AddScatters(const VariableRoute& route, const VariableWrite& write,
                         std::vector<std::vector<ScatterPiece>>* pieces) {
  std::map<uint32_t, ScatterPiece> parts;
  const auto& starts = route.proto.partition_starts();
  for (size_t i = 0; i < write.rows.size(); ++i) {
    const int64_t row = write.rows[i];
    if (row < 0 || row >= route.layout.rows) {
      return WithKind(absl::OutOfRangeError(absl::StrCat("row ", row, " is outside of variable '",
                                                         route.proto.name(), "', which has ",
                                                         route.layout.rows, " rows")),
                      pb::ERROR_USER, pb::ROLE_WORKER);
    }
    const auto after = std::upper_bound(starts.begin(), starts.end(), row);
    const auto p = static_cast<uint32_t>(after - starts.begin()) - 1;
    ScatterPiece& part = parts[p];
    part.rows.push_back(row - starts[static_cast<int>(p)]);
    part.origins.push_back(i);
  }
  for (auto& [p, part] : parts) {
    part.kind = write.kind == VariableWrite::kScatterAdd ? pb::VariableUpdate::SCATTER_ADD
                                                         : pb::VariableUpdate::SCATTER_UPDATE;
    part.variable = write.variable;
    part.partition = p;
    part.row_bytes = static_cast<size_t>(route.layout.bytes_per_row);
    part.from = static_cast<const char*>(write.value);
    (*pieces)[route.servers[p]].push_back(std::move(part));
  }
  return absl::OkStatus();
}

ProductPiece ProductPiece::Records(int64_t first, int64_t count) const {
  ProductPiece piece = *this;
  piece.batch = count;
  piece.x += first * (back ? rows : columns);
  piece.out += first * (back ? columns : rows);
  return piece;
}

void ProductPiece::TakeColumns(const float* from, char* to) const {
  const size_t bytes = static_cast<size_t>(part_rows) * sizeof(float);
  for (int64_t b = 0; b < batch; ++b, to += bytes)
    std::memcpy(to, from + b * rows + first_row, bytes);
}

void ProductPiece::PutColumns(const char* from, float* to) const {
  const size_t bytes = static_cast<size_t>(part_rows) * sizeof(float);
  for (int64_t b = 0; b < batch; ++b, from += bytes)
    std::memcpy(to + b * rows + first_row, from, bytes);
}

void ProductPiece::Describe(pb::VariableUpdate* update) const {
  update->set_variable(variable);
  update->set_partition(partition);
  update->set_kind(pb::VariableUpdate::PRODUCT_GRADIENT);
  update->set_rows(static_cast<uint32_t>(batch));
}

void AddProducts(const VariableRoute& route, const ProductRead& product,
                 std::vector<std::vector<ProductPiece>>* pieces) {
  const int partitions = static_cast<int>(route.servers.size());
  for (int p = 0; p < partitions; ++p) {
    const int64_t first = route.proto.partition_starts(p);
    const int64_t end =
        p + 1 < partitions ? route.proto.partition_starts(p + 1) : route.layout.rows;
    if (end == first) continue;
    (*pieces)[route.servers[static_cast<size_t>(p)]].push_back(
        {product.variable, static_cast<uint32_t>(p), product.back, product.batch, route.layout.rows,
         route.layout.elements_per_row, first, end - first, product.x, product.out});
  }
}

size_t GradientBytes(const std::vector<ProductPiece>& pieces) {
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    bytes += PaddedTo8(pieces[i].NarrowBytes());
    if (!SharesInput(pieces, i)) bytes += PaddedTo8(pieces[i].WideBytes());
  }
  return bytes;
}

char* WriteGradients(const std::vector<ProductPiece>& pieces, char* to) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t bytes = pieces[i].NarrowBytes();
    pieces[i].TakeColumns(pieces[i].x, to);
    std::memset(to + bytes, 0, PaddedTo8(bytes) - bytes);
    to += PaddedTo8(bytes);
    if (!SharesInput(pieces, i)) to = CopyPadded(pieces[i].other, pieces[i].WideBytes(), to);
  }
  return to;
}

}  // namespace mu
