// What the coordinator does with the parameter servers: placement, values, checkpoints.
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/sharding/placement.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

absl::Status Coordinator::ConfigureServers() {
  if (servers_current_) return absl::OkStatus();
  MU_RETURN_IF_ERROR(runtime_->WaitForServers(options_.start_timeout));
  pb::RoutingProto routing;
  runtime_->ChangeCatalog([&](Catalog& catalog) { routing = catalog.routing(); });
  routing.set_version(++routing_version_);
  routing.clear_servers();
  for (const Member& server : runtime_->Servers()) {
    pb::ServerProto& proto = *routing.add_servers();
    proto.set_index(server.index);
    proto.set_address(server.address);
    proto.set_incarnation(server.incarnation.value());
  }
  MU_RETURN_IF_ERROR(PlaceAll(&routing));
  MU_RETURN_IF_ERROR(client_->SetRouting(routing));
  MU_RETURN_IF_ERROR(admin_->Configure(runtime_->Context()));
  // Workers hear of it only now, when the servers can answer them.
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.SetRouting(routing); });
  servers_current_ = true;
  return absl::OkStatus();
}

absl::Status Coordinator::Fence(FunctionId below) {
  if (client_->view() == nullptr) return absl::OkStatus();  // no server has been given anything yet
  pb::RequestContext context = runtime_->Context();
  context.set_low_water(below.value());
  return admin_->Fence(context);
}

absl::StatusOr<Tensor> Coordinator::Read(const Variable& variable) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  return admin_->ReadVariable(runtime_->Context(), variable.name());
}

absl::Status Coordinator::Assign(const Variable& variable, const Tensor& value) {
  if (!variable.valid()) return absl::InvalidArgumentError("this Variable handle is empty");
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  return admin_->AssignVariable(runtime_->Context(), variable.name(), value);
}

absl::StatusOr<Tensor> Coordinator::ReadRows(const EmbeddingTable& table, absl::Span<const int64_t> ids) {
  if (!table.valid()) return absl::InvalidArgumentError("this EmbeddingTable handle is empty");
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  // A pull wants each id once; the caller may repeat them.
  std::map<int64_t, size_t> position;
  std::vector<int64_t> unique;
  for (const int64_t id : ids) {
    if (position.try_emplace(id, unique.size()).second) unique.push_back(id);
  }
  const int64_t dim = table.proto().dim();
  Tensor rows(kFloat32, Shape{static_cast<int64_t>(unique.size()), dim});
  PsSession session(client_.get(), {.context = runtime_->Context(), .function = 0, .read_only = true});
  const RowsRead read{table.proto().id(), unique, rows.data<float>()};
  MU_RETURN_IF_ERROR(session.Pull({}, absl::MakeConstSpan(&read, 1)));
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

absl::StatusOr<pb::CheckpointProto> Coordinator::Save(const std::string& directory, pb::CheckpointProto manifest) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  if (runtime_->Stats().unfinished > 0) {
    return absl::FailedPreconditionError("functions are queued or running; Join before Save");
  }
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  MU_RETURN_IF_ERROR(MakeDirectories(absolute));
  MU_ASSIGN_OR_RETURN(const auto files, admin_->Save(runtime_->Context(), absolute));
  manifest.set_format_version(kCheckpointFormat);
  manifest.set_job(runtime_->options().job.value());
  manifest.set_epoch(runtime_->options().epoch.value());
  manifest.clear_files();
  for (const auto& file : files) *manifest.add_files() = file;
  const auto view = client_->view();
  *manifest.mutable_variables() = view->routing->proto().variables();
  *manifest.mutable_tables() = view->routing->proto().tables();
  MU_RETURN_IF_ERROR(WriteManifest(absolute, manifest));
  return manifest;
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Restore(const std::string& directory) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  MU_ASSIGN_OR_RETURN(pb::CheckpointProto manifest, ReadManifest(absolute));
  MU_RETURN_IF_ERROR(CheckFits(manifest, client_->view()->routing->proto()));
  const std::vector<pb::CheckpointFileProto> files(manifest.files().begin(), manifest.files().end());
  // A restore begins a new generation of the servers' state; what still belongs to the old one is refused.
  pb::RequestContext context = runtime_->Context();
  context.set_generation(context.generation() + 1);
  MU_RETURN_IF_ERROR(admin_->Restore(context, absolute, files).status());
  pb::RoutingProto routing = client_->view()->routing->proto();
  routing.set_generation(context.generation());
  routing.set_version(++routing_version_);
  MU_RETURN_IF_ERROR(client_->SetRouting(routing));
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.SetRouting(routing); });
  return manifest;
}

}  // namespace mu
