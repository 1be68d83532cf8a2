// Values of variables and tables, as a program reads and assigns them.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/cluster/coordinator_impl.h"
#include "coordinator/core/deadlines.h"

namespace mu {

absl::Status Coordinator::Impl::WithServers(const std::function<absl::Status()>& call) {
  for (int tries = 0;;) {
    MU_RETURN_IF_ERROR(runtime->EnsureServers());
    const absl::Status status = call();
    if (!deadlines::MayTryAgain(CallError::Of(status), &tries)) return status;
  }
}

absl::StatusOr<Tensor> Coordinator::Read(const Variable& variable) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  Tensor value;
  MU_RETURN_IF_ERROR(impl_->WithServers([&]() -> absl::Status {
    MU_ASSIGN_OR_RETURN(
        value, impl_->servers.admin()->ReadVariable(impl_->runtime->Context(), variable.name()));
    return absl::OkStatus();
  }));
  return value;
}

absl::Status Coordinator::Assign(const Variable& variable, const Tensor& value) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  return impl_->Assign({variable.name(), value.ToProto()});
}

absl::StatusOr<Tensor> Coordinator::ReadRows(const Variable& variable, int64_t first,
                                             int64_t count) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
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
  MU_RETURN_IF_ERROR(impl_->WithServers([&] {
    PsSession session(impl_->servers.client(),
                      {.context = impl_->runtime->Context(), .function = 0, .read_only = true});
    const VariableRead read{variable.proto().id(), value.raw(), first, count};
    return session.Pull(absl::MakeConstSpan(&read, 1), {});
  }));
  return value;
}

absl::Status Coordinator::Impl::Assign(Assignment assignment) {
  MU_RETURN_IF_ERROR(runtime->EnsureServers());
  if (runtime->updates_paused() && !runtime->begun()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "what was assigned so far takes the memory in which it is kept for servers that are lost, "
        "and only a checkpoint makes room; there is none before the job has begun: call Restore() "
        "or StartFresh() before '",
        assignment.variable, "' is assigned"));
  }
  return runtime->Run({.kind = ServerTask::Kind::kAssign,
                       .assignment = std::make_shared<const Assignment>(std::move(assignment))},
                      std::make_shared<TaskState>());
}

absl::Status Coordinator::AssignRows(const Variable& variable, absl::Span<const int64_t> rows,
                                     const Tensor& values) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  if (rows.empty()) return absl::OkStatus();
  return impl_->Assign({variable.name(), values.ToProto(), false, {rows.begin(), rows.end()}});
}

absl::Status Coordinator::AssignRows(const EmbeddingTable& table, absl::Span<const int64_t> ids,
                                     const Tensor& values) {
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  if (ids.empty()) return absl::OkStatus();
  return impl_->Assign({table.name(), values.ToProto(), true, {ids.begin(), ids.end()}});
}

absl::Status Coordinator::ReadTable(const EmbeddingTable& table,
                                    const std::function<absl::Status(const TableRows&)>& visit,
                                    uint32_t rows_in_piece) {
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  const int64_t dim = table.proto().dim();
  if (rows_in_piece == 0) {
    constexpr uint64_t kPieceBytes = 16 << 20;
    rows_in_piece = static_cast<uint32_t>(std::clamp<uint64_t>(
        kPieceBytes / (static_cast<uint64_t>(dim) * sizeof(float)), 1, 1 << 16));
  }
  PsAdmin::TablePosition position;
  while (!position.end) {
    PsAdmin::TableRows rows;
    MU_RETURN_IF_ERROR(impl_->WithServers([&]() -> absl::Status {
      MU_ASSIGN_OR_RETURN(
          rows, impl_->servers.admin()->Scan(impl_->runtime->Context(), table.name(), rows_in_piece,
                                             &position));
      return absl::OkStatus();
    }));
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
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  // A pull wants each id once; the caller may repeat them.
  std::map<int64_t, size_t> position;
  std::vector<int64_t> unique;
  for (const int64_t id : ids) {
    if (position.try_emplace(id, unique.size()).second) unique.push_back(id);
  }
  const int64_t dim = table.proto().dim();
  Tensor rows(kFloat32, Shape{static_cast<int64_t>(unique.size()), dim});
  MU_RETURN_IF_ERROR(impl_->WithServers([&] {
    PsSession session(impl_->servers.client(),
                      {.context = impl_->runtime->Context(), .function = 0, .read_only = true});
    const RowsRead read{table.proto().id(), unique, rows.data<float>()};
    return session.Pull({}, absl::MakeConstSpan(&read, 1));
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
