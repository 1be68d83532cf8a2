// Checkpoints of the coordinator: taking them and loading them.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "common/obs/telemetry.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

absl::StatusOr<pb::CheckpointProto> Coordinator::Save(const std::string& directory,
                                                      pb::CheckpointProto manifest) {
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  // Servers would write over its files before the new manifest: a server lost meanwhile would cost
  // both.
  if (FileExists(JoinPath(absolute, kManifestName))) {
    return absl::AlreadyExistsError(
        absl::StrCat(absolute, " holds a checkpoint; name another directory or remove it"));
  }
  const absl::Status saved =
      SaveWhenServing([&] { return absl::StatusOr<std::string>(absolute); }, &manifest);
  if (!saved.ok()) {
    RemoveTree(JoinPath(absolute, kManifestName)).IgnoreError();  // it is no checkpoint
    return saved;
  }
  return manifest;
}

absl::Status Coordinator::SaveWhenServing(
    const std::function<absl::StatusOr<std::string>()>& directory, pb::CheckpointProto* manifest) {
  while (true) {
    MU_RETURN_IF_ERROR(EnsureServers());
    MutexLock lock(&save_mutex_);
    MU_ASSIGN_OR_RETURN(const std::string path, directory());
    bool begun = false;
    const auto number = SaveLocked(path, false, manifest, &begun);
    if (number.ok() || begun || !absl::IsUnavailable(number.status())) return number.status();
  }
}

absl::StatusOr<CheckpointNumber> Coordinator::SaveLocked(const std::string& directory, bool leaving,
                                                         pb::CheckpointProto* manifest,
                                                         bool* begun) {
  CheckpointNumber number;
  {
    MutexLock lock(&checkpoint_mutex_);
    number = CheckpointNumber(++last_checkpoint_);
  }
  Telemetry* const telemetry = runtime_->options().telemetry;
  const uint64_t interruptions = files_->interruptions();
  {
    ScopedSpan span(telemetry, "checkpoint_position");
    MU_RETURN_IF_ERROR(runtime_->BeginCheckpoint(number, leaving));
  }
  ScopedSpan whole(telemetry, "checkpoint", directory);
  *begun = true;
  absl::Status saved = MakeDirectories(directory);
  if (saved.ok()) {
    ScopedSpan span(telemetry, "checkpoint_save");
    const auto replies = files_->Save(runtime_->Context(), directory, interruptions);
    saved = replies.status();
    manifest->clear_files();
    manifest->clear_updates();
    if (replies.ok()) {
      for (const pb::SaveReply& reply : *replies) {
        *manifest->add_files() = reply.file();
        manifest->add_updates(reply.updates());
      }
    }
  }
  ScopedSpan span(telemetry, "checkpoint_manifest");
  // Before the position: a call that is scheduled in between is unfinished there, with its place.
  const uint64_t scheduled = scheduled_steps_;
  MU_RETURN_IF_ERROR(runtime_->CheckpointSaved(number, saved, manifest));
  manifest->mutable_position()->set_scheduled_steps(scheduled);
  if (manifest->position().steps() > 0) {
    manifest->set_steps(manifest->position().steps());
    manifest->set_samples(manifest->position().samples());
  }
  manifest->set_format_version(kCheckpointFormat);
  manifest->set_job(runtime_->options().job.value());
  manifest->set_epoch(runtime_->options().epoch.value());
  manifest->set_number(number.value());
  manifest->set_job_fingerprint(options_.job_fingerprint);
  const auto view = client_->view();
  *manifest->mutable_variables() = view->routing->proto().variables();
  *manifest->mutable_tables() = view->routing->proto().tables();
  const absl::Status written = runtime_->IsSuperseded()
                                   ? absl::AbortedError("a newer coordinator has taken over")
                                   : WriteManifest(directory, *manifest);
  MU_RETURN_IF_ERROR(CommitFolder(number, directory,
                                  [&] { return runtime_->CheckpointWritten(number, written); }));
  return number;
}

absl::Status Coordinator::CommitFolder(CheckpointNumber number, const std::string& directory,
                                       const std::function<absl::Status()>& commit) {
  {
    MutexLock lock(&checkpoint_mutex_);
    folders_.Add(number, directory);
  }
  absl::Status committed = commit();
  MutexLock lock(&checkpoint_mutex_);
  if (committed.ok()) {
    folders_.Committed();
  } else {
    folders_.Remove(number);
  }
  return committed;
}

absl::StatusOr<std::string> Coordinator::ClaimDirectory() {
  MU_ASSIGN_OR_RETURN(const std::string parent, CheckpointParent());
  if (!begun()) {
    const auto earlier = ListCheckpoints(parent);
    if (!earlier.ok() && !absl::IsNotFound(earlier.status())) return earlier.status();
    if (earlier.ok() && !earlier->empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          parent,
          " holds checkpoints, and this program has neither continued from them nor begun: a "
          "checkpoint of now would be taken for the job's newest state; call Restore() first, or "
          "BeginAnew(), or take another directory"));
    }
    BeginAnew();
  }
  return ClaimCheckpointDirectory(parent);
}

void Coordinator::BeginAnew() {
  MutexLock lock(&checkpoint_mutex_);
  begins_anew_ = true;
}

bool Coordinator::begun() const {
  if (runtime_->begun()) return true;
  MutexLock lock(&checkpoint_mutex_);
  return begins_anew_;
}

void Coordinator::CheckpointFailed(const std::string& directory) {
  // A newer coordinator decides over what is in the folder.
  if (directory.empty() || runtime_->IsSuperseded()) return;
  if (const absl::Status emptied = EmptyCheckpointDirectory(directory); !emptied.ok()) {
    MU_LOG(WARN, "what is left of a checkpoint that failed: {}", emptied);
  }
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Checkpoint(pb::CheckpointProto manifest,
                                                            std::string* used) {
  std::string directory;
  const auto claim = [&]() -> absl::StatusOr<std::string> {
    if (!directory.empty()) return directory;
    auto claimed = ClaimDirectory();
    if (claimed.ok()) directory = *claimed;
    return claimed;
  };
  const absl::Status saved = SaveWhenServing(claim, &manifest);
  if (used != nullptr) *used = directory;
  if (saved.ok()) return manifest;
  CheckpointFailed(directory);
  return saved;
}

absl::Status Coordinator::PruneCheckpoints(int keep) {
  const auto found = CheckpointParent();
  if (absl::IsFailedPrecondition(found.status()) || keep <= 0) return absl::OkStatus();
  MU_ASSIGN_OR_RETURN(const std::string parent, found);
  MutexLock lock(&save_mutex_);  // none is incomplete because it is being taken
  MU_ASSIGN_OR_RETURN(std::vector<std::string> old, ListFailedCheckpoints(parent));
  MU_ASSIGN_OR_RETURN(const auto complete, ListCheckpoints(parent));
  {
    // One that was found to be damaged does not stand for a good one, which is older.
    MutexLock checkpoint_lock(&checkpoint_mutex_);
    int kept = 0;
    for (auto it = complete.rbegin(); it != complete.rend(); ++it) {
      if (kept == keep) old.push_back(*it);
      if (kept < keep && !bad_checkpoints_.contains(*it)) ++kept;
    }
  }
  for (const std::string& directory : old) {
    if (runtime_->IsSuperseded()) return absl::AbortedError("a newer coordinator has taken over");
    MU_RETURN_IF_ERROR(RemoveCheckpoint(directory));
  }
  return absl::OkStatus();
}

absl::Status Coordinator::Load(const std::string& directory, const pb::CheckpointProto& manifest,
                               bool continues) {
  ScopedSpan span(runtime_->options().telemetry, "restore", directory);
  const uint64_t interruptions = files_->interruptions();  // before what may have come until now
  MU_RETURN_IF_ERROR(runtime_->ended());
  const uint64_t token = runtime_->ServersLost();
  const Generation generation = runtime_->NextGeneration();
  MU_ASSIGN_OR_RETURN(const auto replies,
                      RestoreServers(directory, {manifest.files().begin(), manifest.files().end()},
                                     {}, generation.value(), interruptions));
  std::vector<uint64_t> updates;
  for (const pb::RestoreReply& reply : replies) updates.push_back(reply.updates());
  CheckpointNumber number;
  {
    MutexLock lock(&checkpoint_mutex_);
    last_checkpoint_ = std::max(last_checkpoint_, manifest.number()) + 1;
    number = CheckpointNumber(last_checkpoint_);
  }
  // Whoever only takes the values over repeats nothing: what the job did not know of then is of no
  // interest.
  std::vector<uint64_t> acknowledged;
  if (continues) {
    acknowledged.assign(manifest.position().acknowledged().begin(),
                        manifest.position().acknowledged().end());
  }
  // A job that goes on has its functions' ids; what is new must not have those of another run.
  const FunctionId next(continues ? 1 : std::max<uint64_t>(1, manifest.position().next_function()));
  return CommitFolder(number, directory, [&] {
    return runtime_->StateLoaded(token, generation, number, next, updates, acknowledged);
  });
}

absl::StatusOr<pb::CheckpointProto> Coordinator::Restore(const std::string& directory) {
  MU_ASSIGN_OR_RETURN(const std::string absolute, AbsolutePath(directory));
  pb::CheckpointProto manifest;
  absl::Status bad;  // there is no use in trying that again
  MU_RETURN_IF_ERROR(WithServers([&]() -> absl::Status {
    MU_RETURN_IF_ERROR(runtime_->WaitForRepeats());
    const uint64_t token = runtime_->ServersLost();
    absl::Status loaded;
    {
      MutexLock save_lock(&save_mutex_);
      MutexLock lock(&mutex_);
      MU_ASSIGN_OR_RETURN(manifest, ReadManifest(absolute));
      MU_RETURN_IF_ERROR(CheckFits(manifest, client_->view()->routing->proto()));
      if (runtime_->Stats().unfinished > 0)
        return absl::UnavailableError("functions are being repeated");
      loaded = Load(absolute, manifest, /*continues=*/false);
    }
    loaded = AfterLoad(loaded, absolute, manifest, token);
    if (!IsBadCheckpoint(loaded)) return loaded;
    bad = loaded;
    return absl::OkStatus();
  }));
  MU_RETURN_IF_ERROR(bad);
  MutexLock lock(&mutex_);
  // Those of earlier programs do not say.
  const uint64_t scheduled = manifest.position().scheduled_steps();
  scheduled_steps_ = scheduled > 0 ? scheduled : manifest.steps();
  return manifest;
}

}  // namespace mu
