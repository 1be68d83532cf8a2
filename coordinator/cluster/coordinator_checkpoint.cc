// Checkpoints of the coordinator: taking them, going back to them when a server is lost, loading one at the start.
#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

absl::StatusOr<pb::CheckpointProto> Coordinator::Save(const std::string& directory, pb::CheckpointProto manifest) {
  {
    MutexLock lock(&mutex_);
    MU_RETURN_IF_ERROR(ConfigureServers());
  }
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  // One at a time; functions that are queued wait, so that every server is saved between the same two functions.
  MutexLock lock(&save_mutex_);
  uint64_t token = 0;
  MU_RETURN_IF_ERROR(runtime_->HoldFunctions(&token));
  const FunctionQueue::Position position = runtime_->CheckpointPosition();
  const auto saved = [&]() -> absl::Status {
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
    if (!runtime_->HeldSince(token)) return absl::UnavailableError("a server was lost while it was saved");
    return WriteManifest(absolute, manifest);
  }();
  if (saved.ok()) {
    MutexLock checkpoint_lock(&checkpoint_mutex_);
    last_checkpoint_ = absolute;
    assigned_.clear();
    runtime_->CheckpointCommitted(position);
  }
  runtime_->Continue();
  MU_RETURN_IF_ERROR(saved);
  return manifest;
}

void Coordinator::EnableRecovery(const std::string& directory) {
  {
    MutexLock lock(&checkpoint_mutex_);
    checkpoint_directory_ = std::make_unique<std::string>(directory);
  }
  runtime_->SetRecovery([this] { return Recover(); });
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Checkpoint(pb::CheckpointProto manifest) {
  std::string parent;
  {
    MutexLock lock(&checkpoint_mutex_);
    if (checkpoint_directory_ == nullptr) {
      return absl::FailedPreconditionError("there is no directory for checkpoints; call EnableRecovery first");
    }
    parent = *checkpoint_directory_;
  }
  MU_ASSIGN_OR_RETURN(const std::string directory, NextCheckpointDirectory(parent));
  return Save(directory, std::move(manifest));
}

absl::Status Coordinator::Recover() {
  std::string checkpoint;
  std::vector<std::pair<std::string, Tensor>> assigned;
  {
    MutexLock lock(&checkpoint_mutex_);
    checkpoint = last_checkpoint_;
    assigned = assigned_;
  }
  MutexLock lock(&mutex_);
  // Nothing was placed yet: the first ConfigureServers finds the new server.
  if (client_->view() == nullptr) return absl::OkStatus();
  std::vector<pb::CheckpointFileProto> files;
  if (!checkpoint.empty()) {
    MU_ASSIGN_OR_RETURN(const pb::CheckpointProto manifest, ReadManifest(checkpoint));
    files.assign(manifest.files().begin(), manifest.files().end());
  }
  MU_RETURN_IF_ERROR(RestoreServers(checkpoint, files));
  for (const auto& [name, value] : assigned) {
    MU_RETURN_IF_ERROR(admin_->AssignVariable(runtime_->Context(), name, value));
  }
  MU_LOG(INFO, "all servers are at {}", checkpoint.empty() ? "their initial values" : checkpoint);
  return absl::OkStatus();
}

absl::Status Coordinator::RestoreServers(const std::string& directory,
                                         const std::vector<pb::CheckpointFileProto>& files) {
  MU_ASSIGN_OR_RETURN(pb::RoutingProto routing, NextRouting());
  // A restore begins a new generation of the servers' state; what still belongs to the old one is refused.
  routing.set_generation(routing.generation() + 1);
  MU_RETURN_IF_ERROR(client_->SetRouting(routing));
  pb::RequestContext context = runtime_->Context();
  MU_RETURN_IF_ERROR(admin_->Configure(context));
  context.set_generation(routing.generation());
  MU_RETURN_IF_ERROR(admin_->Restore(context, directory, files).status());
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.SetRouting(routing); });
  servers_current_ = true;
  return absl::OkStatus();
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Restore(const std::string& directory) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(ConfigureServers());
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  MU_ASSIGN_OR_RETURN(pb::CheckpointProto manifest, ReadManifest(absolute));
  MU_RETURN_IF_ERROR(CheckFits(manifest, client_->view()->routing->proto()));
  if (runtime_->Stats().unfinished > 0) {
    return absl::FailedPreconditionError("functions are queued or running; Join before Restore");
  }
  MU_RETURN_IF_ERROR(RestoreServers(absolute, {manifest.files().begin(), manifest.files().end()}));
  scheduled_steps_ = manifest.steps();
  MutexLock checkpoint_lock(&checkpoint_mutex_);
  last_checkpoint_ = absolute;
  assigned_.clear();
  return manifest;
}

}  // namespace mu
