#include "common/client/step_grouping.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/rpc/frame.h"

namespace mu {
namespace {

inline void CopyRow(float* to, const float* from, size_t dim) {
  if (dim == 16) {  // a length that the compiler knows
    std::memcpy(to, from, 16 * sizeof(float));
  } else {
    std::memcpy(to, from, dim * sizeof(float));
  }
}

absl::Status Unknown(absl::string_view what, uint32_t id) {
  return absl::InvalidArgumentError(
      absl::StrCat("no ", what, " has id ", id, " in the routing that is known here"));
}

}  // namespace

void StepGrouping::Begin(size_t servers) {
  tables_ = 0;
  if (pieces_.size() < servers) {
    pieces_.resize(servers);
    scatters_.resize(servers);
    products_.resize(servers);
  }
  for (auto& of_server : pieces_) of_server.clear();
  for (auto& of_server : scatters_) of_server.clear();
  for (auto& of_server : products_) of_server.clear();
}

absl::Status StepGrouping::AddVariable(const Routing& routing, const Piece& whole) {
  const VariableRoute* route = routing.variable(whole.variable);
  if (route == nullptr) return Unknown("variable", whole.variable);
  for (uint32_t p = 0; p < route->servers.size(); ++p) {
    if (route->sizes[p] == 0) continue;
    Piece piece = whole;
    piece.partition = p;
    piece.size = route->sizes[p];
    if (whole.out != nullptr) piece.out = whole.out + route->offsets[p];
    if (whole.from != nullptr) piece.from = whole.from + route->offsets[p];
    pieces_[route->servers[p]].push_back(piece);
  }
  return absl::OkStatus();
}

absl::Status StepGrouping::AddRead(const Routing& routing, const VariableRead& read) {
  if (read.rows < 0) {
    Piece whole{};
    whole.variable = read.variable;
    whole.out = static_cast<char*>(read.out);
    return AddVariable(routing, whole);
  }
  const VariableRoute* route = routing.variable(read.variable);
  if (route == nullptr) return Unknown("variable", read.variable);
  const int64_t end = read.first_row + read.rows;
  if (read.first_row < 0 || end > route->layout.rows) {
    return absl::OutOfRangeError(absl::StrCat("rows ", read.first_row, " to ", end,
                                              " are not within variable '", route->proto.name(),
                                              "', which has ", route->layout.rows, " rows"));
  }
  const size_t row_bytes = static_cast<size_t>(route->layout.bytes_per_row);
  for (uint32_t p = 0; p < route->servers.size() && row_bytes > 0; ++p) {
    const int64_t begin = route->proto.partition_starts(static_cast<int>(p));
    const int64_t held = static_cast<int64_t>(route->sizes[p] / row_bytes);
    const int64_t from = std::max(read.first_row, begin);
    const int64_t to = std::min(end, begin + held);
    if (from >= to) continue;
    Piece piece{};
    piece.variable = read.variable;
    piece.partition = p;
    piece.size = static_cast<size_t>(to - from) * row_bytes;
    piece.out =
        static_cast<char*>(read.out) + static_cast<size_t>(from - read.first_row) * row_bytes;
    piece.first_row = static_cast<uint64_t>(from - begin);
    piece.rows = static_cast<uint64_t>(to - from);
    pieces_[route->servers[p]].push_back(piece);
  }
  return absl::OkStatus();
}

absl::Status StepGrouping::AddWrite(const Routing& routing, const VariableWrite& write) {
  const VariableRoute* route = routing.variable(write.variable);
  if (route == nullptr) return Unknown("variable", write.variable);
  if (write.has_rows()) return AddScatters(*route, write, &scatters_);
  if (write.kind == VariableWrite::kProductGradient) {
    AddProducts(*route,
                {write.variable, /*back=*/true, write.batch, static_cast<const float*>(write.value),
                 nullptr},
                &products_);
    for (auto& of_server : products_) {
      for (ProductPiece& piece : of_server) {
        if (piece.variable == write.variable) piece.other = write.x;
      }
    }
    return absl::OkStatus();
  }
  Piece whole{};
  whole.variable = write.variable;
  whole.from = static_cast<const char*>(write.value);
  whole.kind = write.kind == VariableWrite::kGradient    ? pb::VariableUpdate::GRADIENT
               : write.kind == VariableWrite::kAssignAdd ? pb::VariableUpdate::ASSIGN_ADD
                                                         : pb::VariableUpdate::ASSIGN;
  return AddVariable(routing, whole);
}

absl::Status StepGrouping::AddRows(const Routing& routing, uint32_t table,
                                   absl::Span<const int64_t> ids, float* out,
                                   const float* gradients) {
  const TableRoute* route = routing.table(table);
  if (route == nullptr) return Unknown("table", table);
  if (rows_.size() == tables_) rows_.emplace_back();
  Rows& rows = rows_[tables_++];
  rows.out = out;
  rows.gradients = gradients;
  return rows.ids.Group(*route, ids);
}

absl::Status StepGrouping::GroupReads(const Routing& routing,
                                      absl::Span<const VariableRead> variables,
                                      absl::Span<const RowsRead> rows) {
  Begin(routing.servers().size());
  for (const VariableRead& read : variables) MU_RETURN_IF_ERROR(AddRead(routing, read));
  for (const RowsRead& read : rows)
    MU_RETURN_IF_ERROR(AddRows(routing, read.table, read.ids, read.out, nullptr));
  return absl::OkStatus();
}

absl::Status StepGrouping::GroupWrites(const Routing& routing,
                                       absl::Span<const VariableWrite> variables,
                                       absl::Span<const RowsWrite> rows) {
  Begin(routing.servers().size());
  for (const VariableWrite& write : variables) MU_RETURN_IF_ERROR(AddWrite(routing, write));
  for (const RowsWrite& write : rows) {
    MU_RETURN_IF_ERROR(AddRows(routing, write.table, write.ids, nullptr, write.gradients));
  }
  return absl::OkStatus();
}

size_t StepGrouping::CountIds(size_t server) const {
  size_t count = 0;
  for (size_t t = 0; t < tables_; ++t)
    count += rows_[t].ids.end(server) - rows_[t].ids.begin(server);
  return count;
}

size_t StepGrouping::PieceBytes(size_t server) const {
  size_t bytes = 0;
  for (const Piece& piece : pieces_[server]) bytes += PaddedTo8(piece.size);
  for (const ScatterPiece& piece : scatters_[server]) bytes += piece.bytes();
  return bytes + GradientBytes(products_[server]);
}

size_t StepGrouping::RowBytes(size_t server) const {
  size_t bytes = 0;
  for (size_t t = 0; t < tables_; ++t) {
    const GroupedIds& ids = rows_[t].ids;
    bytes += (ids.end(server) - ids.begin(server)) * ids.table().proto.dim() * sizeof(float);
  }
  return bytes;
}

bool StepGrouping::Needs(size_t server) const {
  return !pieces_[server].empty() || !scatters_[server].empty() || !products_[server].empty() ||
         CountIds(server) > 0;
}

char* StepGrouping::WriteIds(size_t server, char* to) const {
  for (size_t t = 0; t < tables_; ++t) {
    const GroupedIds& ids = rows_[t].ids;
    const size_t bytes = (ids.end(server) - ids.begin(server)) * sizeof(int64_t);
    if (bytes > 0) std::memcpy(to, ids.ids().data() + ids.begin(server), bytes);
    to += bytes;
  }
  return to;
}

Buffer StepGrouping::PullFrame(size_t server, pb::PullRequest* header) const {
  header->clear_variables();
  header->clear_tables();
  for (const Piece& piece : pieces_[server]) {
    pb::VariableKey* key = header->add_variables();
    key->set_variable(piece.variable);
    key->set_partition(piece.partition);
    if (piece.rows == 0) continue;
    key->set_first_row(piece.first_row);
    key->set_rows(piece.rows);
  }
  for (size_t t = 0; t < tables_; ++t) rows_[t].ids.AddKeys(server, header->mutable_tables());
  FrameWriter frame(*header, CountIds(server) * sizeof(int64_t));
  WriteIds(server, frame.payload);
  return std::move(frame.buffer).Finish();
}

Buffer StepGrouping::PushFrame(size_t server, pb::PushRequest* header) const {
  header->clear_variables();
  header->clear_tables();
  for (const Piece& piece : pieces_[server]) {
    pb::VariableUpdate* update = header->add_variables();
    update->set_variable(piece.variable);
    update->set_partition(piece.partition);
    update->set_kind(piece.kind);
  }
  for (const ScatterPiece& piece : scatters_[server]) piece.Describe(header->add_variables());
  for (const ProductPiece& piece : products_[server]) piece.Describe(header->add_variables());
  for (size_t t = 0; t < tables_; ++t) rows_[t].ids.AddKeys(server, header->mutable_tables());
  FrameWriter frame(*header,
                    CountIds(server) * sizeof(int64_t) + PieceBytes(server) + RowBytes(server));
  char* to = WriteIds(server, frame.payload);
  for (const Piece& piece : pieces_[server]) {
    std::memcpy(to, piece.from, piece.size);
    std::memset(to + piece.size, 0, PaddedTo8(piece.size) - piece.size);
    to += PaddedTo8(piece.size);
  }
  for (const ScatterPiece& piece : scatters_[server]) to = piece.Write(to);
  to = WriteGradients(products_[server], to);
  for (size_t t = 0; t < tables_; ++t) {
    const GroupedIds& ids = rows_[t].ids;
    const size_t dim = ids.table().proto.dim();
    for (size_t i = ids.begin(server); i < ids.end(server); ++i, to += dim * sizeof(float)) {
      CopyRow(reinterpret_cast<float*>(to), rows_[t].gradients + ids.origins()[i] * dim, dim);
    }
  }
  return std::move(frame.buffer).Finish();
}

absl::Status StepGrouping::TakeReply(size_t server, const Buffer& reply,
                                     pb::PullReply* header) const {
  MU_ASSIGN_OR_RETURN(const absl::Span<const char> payload, ParseFrame(reply, header));
  if (payload.size() != ReplyBytes(server)) {
    return absl::InternalError(absl::StrCat("a parameter server answered a pull with ",
                                            payload.size(), " bytes instead of ",
                                            ReplyBytes(server)));
  }
  const char* from = payload.data();
  for (const Piece& piece : pieces_[server]) {
    std::memcpy(piece.out, from, piece.size);
    from += PaddedTo8(piece.size);
  }
  for (size_t t = 0; t < tables_; ++t) {
    const GroupedIds& ids = rows_[t].ids;
    const size_t dim = ids.table().proto.dim();
    for (size_t i = ids.begin(server); i < ids.end(server); ++i, from += dim * sizeof(float)) {
      CopyRow(rows_[t].out + ids.origins()[i] * dim, reinterpret_cast<const float*>(from), dim);
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
