// What the coordinator does when servers are lost, and when it was started again itself.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/cannot_read.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/checkpoint_verify.h"
#include "coordinator/cluster/coordinator.h"
#include "coordinator/cluster/restore_errors.h"

namespace mu {

void Coordinator::EnableRecovery(const std::string& directory, RecoveryMode mode) {
  {
    MutexLock lock(&checkpoint_mutex_);
    checkpoint_directory_ = std::make_unique<std::string>(directory);
  }
  // The newest that can be read: Restore() may go back to an older one than the newest.
  const auto complete = ListCheckpoints(directory);
  for (auto i = complete.ok() ? complete->size() : 0; i > 0; --i) {
    if (LikeCheckpoint((*complete)[i - 1])) break;
  }
  RecoveryHooks hooks;
  hooks.restore = [this](const RestoreRound& round) { return RunRound(round); };
  hooks.save = [this] { return SaveForLeave(); };
  hooks.assign = [this](FunctionId place, const Assignment& assignment) -> absl::Status {
    MU_ASSIGN_OR_RETURN(const Tensor value, Tensor::FromProto(assignment.value));
    return admin_->AssignVariable(runtime_->Context(), place, assignment.variable, value);
  };
  runtime_->EnableRecovery(mode, std::move(hooks));
}

bool Coordinator::LikeCheckpoint(const std::string& directory) {
  const auto manifest = ReadManifest(directory);
  if (!manifest.ok()) return false;
  MutexLock lock(&checkpoint_mutex_);
  for (const pb::TableProto& table : manifest->tables())
    saved_partitions_[table.name()] = table.partitions();
  return true;
}

// A program's directory may be relative to where it stands; servers stand elsewhere.
absl::StatusOr<std::string> Coordinator::CheckpointParent() const {
  MutexLock lock(&checkpoint_mutex_);
  if (checkpoint_directory_ != nullptr) return AbsolutePath(*checkpoint_directory_);
  return absl::FailedPreconditionError(
      "there is no directory for checkpoints; call EnableRecovery first");
}

absl::StatusOr<RestoredServers> Coordinator::RunRound(const RestoreRound& round) {
  const uint64_t interruptions = files_->interruptions();
  if (!runtime_->RoundIsCurrent(round)) return absl::CancelledError("a server was lost meanwhile");
  std::string directory;
  bool restores = false;
  std::vector<bool> keep;
  for (const RestoreRound::Server& server : round.servers) {
    keep.push_back(server.keep);
    restores |= !server.keep;
  }
  if (restores && round.checkpoint != kInitialValues) {
    MutexLock lock(&checkpoint_mutex_);
    const std::optional<std::string> found = folders_.Find(round.checkpoint);
    if (!found.has_value()) return absl::NotFoundError("the checkpoint's directory is not known");
    directory = *found;
  }
  pb::CheckpointProto manifest;
  absl::StatusOr<RestoredServers> restored = [&]() -> absl::StatusOr<RestoredServers> {
    MutexLock lock(&mutex_);
    if (!directory.empty()) {
      MU_ASSIGN_OR_RETURN(manifest, ReadManifest(directory));
    }
    RestoredServers to;
    MU_ASSIGN_OR_RETURN(
        to.replies, RestoreServers(directory, {manifest.files().begin(), manifest.files().end()},
                                   keep, round.generation.value(), interruptions));
    to.from = directory.empty() ? "initial values" : directory;
    return to;
  }();
  if (IsCannotRead(restored.status()))
    restored = AfterLook(restored.status(), CheckSizes(directory, manifest));
  if (IsBadCheckpoint(restored.status())) NoteBad(directory);
  if (restored.ok() && restores)
    MU_LOG(INFO, "{} restored in generation {}", restored->from, round.generation.value());
  return restored;
}

void Coordinator::NoteBad(const std::string& directory) {
  MutexLock lock(&checkpoint_mutex_);
  bad_checkpoints_.insert(directory);
}

absl::StatusOr<std::vector<pb::RestoreReply>> Coordinator::RestoreServers(
    const std::string& directory, const std::vector<pb::CheckpointFileProto>& files,
    const std::vector<bool>& keep, uint64_t generation, uint64_t interruptions) {
  MU_ASSIGN_OR_RETURN(pb::RoutingProto routing, NextRouting());
  // A restore begins a new generation of the servers' state; what still belongs to the old one is
  // refused.
  routing.set_generation(generation);
  MU_RETURN_IF_ERROR(client_->SetRouting(routing));
  pb::RequestContext context = runtime_->Context();
  context.set_generation(generation - 1);
  MU_RETURN_IF_ERROR(files_->Configure(context, interruptions));
  context.set_generation(generation);
  MU_ASSIGN_OR_RETURN(auto replies,
                      files_->Restore(context, directory, files, keep, interruptions));
  runtime_->ChangeCatalog([&](Catalog& catalog) { catalog.SetRouting(routing); });
  servers_current_ = true;
  return replies;
}

absl::Status Coordinator::AfterLoad(const absl::Status& loaded, const std::string& directory,
                                    const pb::CheckpointProto& manifest, uint64_t token) {
  if (!IsCannotRead(loaded)) return loaded;
  absl::Status after = AfterLook(loaded, CheckSizes(directory, manifest));
  if (FaultOf(after) == RestoreFault::kServer) runtime_->ServerCannotRead(token, after);
  return after;
}

absl::StatusOr<CheckpointNumber> Coordinator::SaveForLeave() {
  MutexLock lock(&save_mutex_);
  MU_ASSIGN_OR_RETURN(const std::string directory, ClaimDirectory());
  pb::CheckpointProto manifest;
  bool begun = false;
  auto number = SaveLocked(directory, true, &manifest, &begun);
  if (!number.ok()) CheckpointFailed(directory);
  return number;
}

absl::Status Coordinator::LoadJob(CoordinatorEpoch since, RestoredJob* job, bool* another_run) {
  MutexLock lock(&mutex_);
  MU_ASSIGN_OR_RETURN(job->manifest, ReadManifest(job->directory));
  *another_run = job->manifest.epoch() < since.value();
  if (*another_run) return absl::OkStatus();
  MU_RETURN_IF_ERROR(CheckFits(job->manifest, client_->view()->routing->proto()));
  const uint64_t saved = job->manifest.job_fingerprint(), own = options_.job_fingerprint;
  if (saved != 0 && own != 0 && saved != own) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is of another job: its fingerprint is %016x, this job's %016x; "
                        "choose another job_dir",
                        job->directory, saved, own));
  }
  return Load(job->directory, job->manifest, /*continues=*/true);
}

void Coordinator::PrepareDataOf(const std::string& checkpoint) {
  const auto manifest = ReadManifest(checkpoint);
  if (!manifest.ok()) return;
  std::set<std::string> names;
  std::set<uint64_t> ids;
  for (const auto& position : manifest->position().datasets()) names.insert(position.name());
  for (const auto& function : manifest->position().functions()) {
    if (function.dataset() != 0) ids.insert(function.dataset());
  }
  MutexLock lock(&data_mutex_);
  for (const auto& [id, dataset] : datasets_) {
    if (names.contains(dataset.name())) ids.insert(id);
  }
  for (const uint64_t id : ids) PrepareDataset(id).IgnoreError();
}

absl::Status Coordinator::ResumeJob(RestoredJob* job) {
  const pb::JobPositionProto& place = job->manifest.position();
  std::set<uint64_t> datasets;
  {
    MutexLock lock(&data_mutex_);
    for (const pb::DatasetPositionProto& position : place.datasets()) {
      uint64_t id = 0;
      for (const auto& [known, dataset] : datasets_) {
        if (dataset.name() == position.name()) id = known;
      }
      if (id == 0) {
        return absl::InvalidArgumentError(absl::StrCat("the checkpoint stopped in the dataset '",
                                                       position.name(),
                                                       "', which this program has not created"));
      }
      datasets.insert(id);
      MU_RETURN_IF_ERROR(PrepareDataset(id));
      absl::Status resumed;
      runtime_->WithLeases(id, [&](DataLeases& leases) { resumed = leases.Resume(position); });
      MU_RETURN_IF_ERROR(resumed);
    }
    for (const auto& function : place.functions()) {
      // One that every worker reads by itself has no position.
      if (function.dataset() != 0) MU_RETURN_IF_ERROR(PrepareDataset(function.dataset()));
    }
  }
  uint64_t scheduled = std::max(place.scheduled_steps(), place.steps());
  for (const auto& function : place.functions())
    scheduled = std::max(scheduled, function.step_offset() + function.steps());
  {
    MutexLock lock(&mutex_);
    scheduled_steps_ = scheduled;
  }
  CheckpointNumber number;
  {
    MutexLock lock(&checkpoint_mutex_);
    number = CheckpointNumber(last_checkpoint_);
  }
  MU_ASSIGN_OR_RETURN(job->unfinished, runtime_->Resume(number, job->manifest, datasets));
  job->user_state = job->manifest.user_state();
  MU_LOG(INFO, "the job continues from {}: {} steps, {} calls unfinished", job->directory,
         place.steps(), job->unfinished.size());
  return absl::OkStatus();
}

absl::StatusOr<RestoredJob> Coordinator::Restore(CoordinatorEpoch since) {
  MU_ASSIGN_OR_RETURN(const std::string parent, CheckpointParent());
  const auto directories = ListCheckpoints(parent);
  const auto nothing = [&](const std::string& what) {
    BeginAnew();
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint ", what, parent, " to continue from"));
  };
  if (!directories.ok() && !absl::IsNotFound(directories.status())) return directories.status();
  if (!directories.ok() || directories->empty()) return nothing("in ");
  constexpr int kTries = 20;  // of one checkpoint, with servers that are lost meanwhile
  absl::Status bad;
  for (auto it = directories->rbegin(); it != directories->rend(); ++it) {
    RestoredJob job;
    job.directory = *it;
    bool another_run = false;
    absl::Status loaded;
    PrepareDataOf(*it);  // may take long, so before anything is locked
    for (int tries = 0; tries < kTries;) {
      MU_RETURN_IF_ERROR(EnsureServers());
      const uint64_t token = runtime_->ServersLost();
      {
        // Until the job has its place in the data as well: a checkpoint in between would lack it.
        MutexLock lock(&save_mutex_);
        loaded = LoadJob(since, &job, &another_run);
        if (loaded.ok() && !another_run) {
          MU_RETURN_IF_ERROR(ResumeJob(&job));
          return job;
        }
      }
      loaded = AfterLoad(loaded, job.directory, job.manifest, token);
      // Servers are replaced as often as it takes; whoever starts them slows down.
      if (FaultOf(loaded) != RestoreFault::kServer) ++tries;
      const pb::ErrorKind kind = KindOf(loaded);
      if (loaded.ok() || (kind != pb::ERROR_MACHINE && kind != pb::ERROR_STALE)) break;
      if (IsBadCheckpoint(loaded)) break;
    }
    if (another_run) break;
    if (!IsBadCheckpoint(loaded)) return loaded;
    MU_LOG(ERROR, "{} cannot be used: {}; trying an older checkpoint", *it, loaded);
    bad = loaded;
    NoteBad(*it);
  }
  if (bad.ok()) return nothing("of this run in ");
  return absl::DataLossError(
      absl::StrCat("no checkpoint in ", parent,
                   " is good; the last that was tried: ", std::string(bad.message())));
}

}  // namespace mu
