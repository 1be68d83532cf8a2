// Values of variables and tables, as a program reads them. They come in pieces: where the servers
// have gone back to a checkpoint meanwhile, or a piece fails with an error that passes, all of them
// are read again, so that they are of one generation of the servers' state; ReadTable reads the
// piece again that it was at.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/client/value_pieces.h"
#include "common/graph/op_table.h"
#include "common/graph/verifier.h"
#include "coordinator/cluster/coordinator_impl.h"
#include "coordinator/core/deadlines.h"

namespace mu {
namespace {

absl::Status NotOwn(absl::string_view what, const std::string& name, absl::string_view creates) {
  return absl::InvalidArgumentError(absl::StrCat(what, " '", name,
                                                 "' was not created by this coordinator; use what "
                                                 "its ",
                                                 creates, " returned"));
}

}  // namespace

absl::Status Coordinator::Impl::CheckOwn(const Variable& variable) const {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  const pb::RoutingProto created = runtime->Created();
  for (const pb::VariableProto& own : created.variables()) {
    if (own.id() == variable.proto().id() && own.name() == variable.name() &&
        own.dtype() == variable.proto().dtype() && Shape(own.shape()) == variable.shape())
      return absl::OkStatus();
  }
  return NotOwn("variable", variable.name(), "CreateVariable");
}

absl::Status Coordinator::Impl::CheckOwn(const EmbeddingTable& table) const {
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  const pb::RoutingProto created = runtime->Created();
  for (const pb::TableProto& own : created.tables()) {
    if (own.id() == table.proto().id() && own.name() == table.name() &&
        own.rows() == table.proto().rows() && own.dim() == table.proto().dim())
      return absl::OkStatus();
  }
  return NotOwn("table", table.name(), "CreateEmbeddingTable");
}

absl::Status Coordinator::Impl::CheckOwn(const pb::FunctionProto& function) const {
  const pb::RoutingProto created = runtime->Created();
  std::map<std::string, const pb::VariableProto*> variables;
  std::map<std::string, const pb::TableProto*> tables;
  for (const pb::VariableProto& own : created.variables()) variables[own.name()] = &own;
  for (const pb::TableProto& own : created.tables()) tables[own.name()] = &own;
  for (int i = 0; i < function.nodes_size(); ++i) {
    const OpDef& def = DefOf(function.nodes(i));
    const AttrReader attrs = def.Read(function.nodes(i).attrs());
    if (def.parameter == OpParameter::kVariable) {
      const auto own = variables.find(attrs.String("variable"));
      if (own == variables.end() || own->second->id() != attrs.Int("id") ||
          own->second->dtype() != attrs.Type("dtype") ||
          Shape(own->second->shape()) != attrs.GetShape("shape")) {
        return NodeError(function, i,
                         NotOwn("variable", attrs.String("variable"), "CreateVariable"));
      }
    } else if (def.parameter == OpParameter::kTable) {
      const auto own = tables.find(attrs.String("table"));
      if (own == tables.end() || own->second->id() != attrs.Int("id") ||
          static_cast<int64_t>(own->second->rows()) != attrs.Int("rows") ||
          own->second->dim() != attrs.Int("dim")) {
        return NodeError(function, i,
                         NotOwn("table", attrs.String("table"), "CreateEmbeddingTable"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Coordinator::Impl::WithServers(const std::function<absl::Status()>& call) {
  for (int tries = 0;;) {
    MU_RETURN_IF_ERROR(runtime->EnsureServers());
    const absl::Status status = call();
    if (!deadlines::MayTryAgain(CallError::Of(status), &tries)) return status;
  }
}

absl::Status Coordinator::Impl::Reading(const std::function<absl::Status()>& call) {
  for (int tries = 0;;) {
    MU_ASSIGN_OR_RETURN(const uint64_t generation, runtime->EnsureWhole());
    const absl::Status status = call();
    // Perhaps it has read while functions were being repeated.
    if (status.ok() && runtime->Context().generation() != generation) continue;
    if (!deadlines::MayTryAgain(CallError::Of(status), &tries)) return status;
  }
}

absl::StatusOr<Tensor> Coordinator::Read(const Variable& variable) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(variable));
  Tensor value;
  MU_RETURN_IF_ERROR(impl_->Reading([&]() -> absl::Status {
    MU_ASSIGN_OR_RETURN(
        value, impl_->servers.admin()->ReadVariable(impl_->runtime->Context(), variable.name(),
                                                    impl_->options.piece_bytes));
    return absl::OkStatus();
  }));
  return value;
}

absl::StatusOr<Tensor> Coordinator::ReadRows(const Variable& variable, int64_t first,
                                             int64_t count) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(variable));
  const int64_t rows = variable.shape().rank() == 0 ? 0 : variable.shape()[0];
  if (first < 0 || count < 0 || first > rows || count > rows - first) {
    return absl::OutOfRangeError(absl::StrCat("rows ", first, " to ", first, " + ", count,
                                              " are not within variable '", variable.name(),
                                              "', which has ", rows, " rows"));
  }
  Shape shape({count});
  for (int axis = 1; axis < variable.shape().rank(); ++axis) shape.Append(variable.shape()[axis]);
  Tensor value(variable.proto().dtype(), shape);
  if (value.bytes() == 0) return value;
  MU_RETURN_IF_ERROR(impl_->Reading([&] {
    PsSession session(impl_->servers.client(),
                      {.context = impl_->runtime->Context(), .function = 0, .read_only = true});
    return PullInPieces(&session, VariableRead{variable.proto().id(), value.raw(), first, count},
                        value.bytes() / static_cast<size_t>(count), impl_->options.piece_bytes);
  }));
  return value;
}

absl::Status Coordinator::ReadTable(const EmbeddingTable& table,
                                    const std::function<absl::Status(const TableRows&)>& visit,
                                    uint32_t rows_in_piece) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(table));
  const int64_t dim = table.proto().dim();
  const int64_t most = RowsInPiece(static_cast<uint64_t>(dim) * sizeof(float) + sizeof(int64_t),
                                   impl_->options.piece_bytes);
  rows_in_piece =
      static_cast<uint32_t>(std::min<int64_t>(rows_in_piece == 0 ? 1 << 16 : rows_in_piece, most));
  PsAdmin::TablePosition position;
  while (!position.end) {
    PsAdmin::TableRows rows;
    PsAdmin::TablePosition next;
    MU_RETURN_IF_ERROR(impl_->Reading([&]() -> absl::Status {
      next = position;
      MU_ASSIGN_OR_RETURN(rows, impl_->servers.admin()->Scan(impl_->runtime->Context(),
                                                             table.name(), rows_in_piece, &next));
      return absl::OkStatus();
    }));
    position = next;
    if (rows.ids.empty()) continue;
    TableRows piece;
    piece.values = Tensor(kFloat32, Shape{static_cast<int64_t>(rows.ids.size()), dim});
    std::copy(rows.values.begin(), rows.values.end(), piece.values.data<float>());
    piece.ids = std::move(rows.ids);
    MU_RETURN_IF_ERROR(visit(piece));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ParameterInfo>> Coordinator::Variables() {
  std::vector<ParameterInfo> infos;
  MU_RETURN_IF_ERROR(impl_->WithServers([&]() -> absl::Status {
    const auto view = impl_->servers.client()->view();
    MU_ASSIGN_OR_RETURN(const std::vector<pb::PsStatsReply> stats,
                        impl_->servers.admin()->Stats(impl_->runtime->Context()));
    infos = ParameterInfosOf(view->routing->proto(), stats);
    return absl::OkStatus();
  }));
  return infos;
}

absl::StatusOr<Tensor> Coordinator::ReadRows(const EmbeddingTable& table,
                                             absl::Span<const int64_t> ids) {
  MU_RETURN_IF_ERROR(impl_->CheckOwn(table));
  // A pull wants each id once; the caller may repeat them.
  std::map<int64_t, size_t> position;
  std::vector<int64_t> unique;
  for (const int64_t id : ids) {
    if (position.try_emplace(id, unique.size()).second) unique.push_back(id);
  }
  const int64_t dim = table.proto().dim();
  Tensor rows(kFloat32, Shape{static_cast<int64_t>(unique.size()), dim});
  MU_RETURN_IF_ERROR(impl_->Reading([&] {
    PsSession session(impl_->servers.client(),
                      {.context = impl_->runtime->Context(), .function = 0, .read_only = true});
    return PullInPieces(&session, RowsRead{table.proto().id(), unique, rows.data<float>()},
                        static_cast<size_t>(dim), impl_->options.piece_bytes);
  }));
  Tensor out(kFloat32, Shape{static_cast<int64_t>(ids.size()), dim});
  for (size_t i = 0; i < ids.size(); ++i) {
    std::copy_n(rows.data<float>() + position[ids[i]] * dim, dim, out.data<float>() + i * dim);
  }
  return out;
}

uint64_t Coordinator::parameters() {
  uint64_t count = 0;
  const pb::RoutingProto created = impl_->runtime->Created();
  for (const auto& variable : created.variables()) {
    if (variable.trainable()) count += static_cast<uint64_t>(Shape(variable.shape()).elements());
  }
  for (const auto& table : created.tables()) count += table.rows() * table.dim();
  return count;
}

}  // namespace mu
