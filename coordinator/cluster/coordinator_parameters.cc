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
  auto assignment = std::make_shared<Assignment>();
  assignment->variable = variable.name();
  assignment->value = value.ToProto();
  MU_RETURN_IF_ERROR(impl_->runtime->EnsureServers());
  return impl_->runtime->Run(
      {.kind = ServerTask::Kind::kAssign, .assignment = std::move(assignment)},
      std::make_shared<TaskState>());
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
