// What the coordinator does with the parameter servers: placement, values, checkpoints.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/sharding/placement.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

absl::StatusOr<pb::RoutingProto> Coordinator::NextRouting() {
  pb::RoutingProto routing;
  runtime_->ChangeCatalog([&](Catalog& catalog) { routing = catalog.routing(); });
  // Whatever older coordinators gave out is smaller.
  const uint64_t base = (runtime_->options().epoch.value() - 1) << 32;
  routing_version_ = std::max(routing_version_, base) + 1;
  routing.set_version(routing_version_);
  routing.set_generation(std::max(routing.generation(), base));
  routing.clear_servers();
  for (const Member& server : runtime_->Servers()) {
    pb::ServerProto& proto = *routing.add_servers();
    proto.set_index(server.index);
    proto.set_address(server.address);
    proto.set_incarnation(server.incarnation.value());
  }
  if (routing.servers_size() < static_cast<int>(runtime_->options().servers)) {
    return absl::UnavailableError("a server is lost");
  }
  MU_RETURN_IF_ERROR(PlaceAll(&routing));
  return routing;
}

absl::Status Coordinator::ConfigureServers() {
  if (servers_current_) return absl::OkStatus();
  MU_RETURN_IF_ERROR(runtime_->WaitForServers(options_.start_timeout));
  const uint64_t token = runtime_->ServersLost();
  MU_ASSIGN_OR_RETURN(pb::RoutingProto routing, NextRouting());
  if (!took_over_) {
    // The servers may hold what an older coordinator left: this one begins with initial values.
    routing.set_generation(runtime_->NextGeneration().value());
    MU_RETURN_IF_ERROR(
        RestoreServers("", {}, {}, routing.generation(), files_->interruptions()).status());
  } else {
    MU_RETURN_IF_ERROR(client_->SetRouting(routing));
    MU_RETURN_IF_ERROR(admin_->Configure(runtime_->Context()));
    // Workers hear of it only now, when the servers can answer them.
    runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.SetRouting(routing); });
  }
  const absl::Status configured =
      runtime_->ServersConfigured(token, Generation(routing.generation()));
  servers_current_ = configured.ok();
  took_over_ |= configured.ok();  // a server may have come since that holds what is older
  return configured;
}

absl::Status Coordinator::EnsureServers() {
  return WithServers([] { return absl::OkStatus(); });
}

absl::Status Coordinator::Fence(const pb::RequestContext& context) {
  if (client_->view() == nullptr) return absl::OkStatus();  // no server has been given anything yet
  return admin_->Fence(context);
}

absl::Status Coordinator::WithServers(const std::function<absl::Status()>& call) {
  // Of a call that a lost server made fail; each waits until all are back
  constexpr int kTries = 20;
  absl::Status status;
  for (int i = 0; i < kTries; ++i) {
    MU_RETURN_IF_ERROR(runtime_->WaitUntilServing());
    {
      MutexLock lock(&mutex_);
      status = ConfigureServers();
    }
    if (absl::IsDeadlineExceeded(status)) return status;
    if (status.ok()) status = call();
    const pb::ErrorKind kind = KindOf(status);
    if (status.ok() || (kind != pb::ERROR_MACHINE && kind != pb::ERROR_STALE)) return status;
  }
  return status;
}

absl::StatusOr<Tensor> Coordinator::Read(const Variable& variable) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  Tensor value;
  MU_RETURN_IF_ERROR(WithServers([&]() -> absl::Status {
    MU_ASSIGN_OR_RETURN(value, admin_->ReadVariable(runtime_->Context(), variable.name()));
    return absl::OkStatus();
  }));
  return value;
}

absl::Status Coordinator::Assign(const Variable& variable, const Tensor& value) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  auto assignment = std::make_shared<Assignment>();
  assignment->variable = variable.name();
  assignment->value = value.ToProto();
  FunctionId place;  // of all tries: a copy of one that comes late is a repeat
  const absl::Status status = WithServers([&]() -> absl::Status {
    // Without the lock: what it waits for is a checkpoint.
    MU_RETURN_IF_ERROR(runtime_->WaitForUpdates());
    MutexLock lock(&save_mutex_);
    const uint64_t token = runtime_->ServersLost();
    place = runtime_->BeginAssignment(place);
    const absl::Status assigned =
        admin_->AssignVariable(runtime_->Context(), place, variable.name(), value);
    runtime_->NoteRefused(place, assigned);  // the next try waits for room
    MU_RETURN_IF_ERROR(assigned);
    // A lost server takes the assignment with it, so it has its place among the functions that are
    // repeated.
    if (runtime_->Assigned(token, place, assignment)) return absl::OkStatus();
    return absl::UnavailableError("a server was lost while the variable was assigned");
  });
  if (!status.ok()) runtime_->EndAssignment(place);
  return status;
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
  MU_RETURN_IF_ERROR(WithServers([&] {
    PsSession session(client_.get(),
                      {.context = runtime_->Context(), .function = 0, .read_only = true});
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
  runtime_->ChangeCatalog([&](Catalog& catalog) {
    for (const auto& variable : catalog.routing().variables()) {
      if (variable.trainable()) count += static_cast<uint64_t>(Shape(variable.shape()).elements());
    }
    for (const auto& table : catalog.routing().tables()) count += table.rows() * table.dim();
  });
  return count;
}

}  // namespace mu
