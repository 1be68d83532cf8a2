// A checkpoint as the runtime sees it: positions before and after the servers' cuts, and the
// commit.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "coordinator/cluster/job_position.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

absl::Status Runtime::BeginCheckpoint(CheckpointNumber checkpoint, bool leaving) {
  MutexLock lock(&mutex_);
  while (cancelling_ && !stopping_ && fatal_.ok()) changed_.Wait(&mutex_);
  if (!fatal_.ok()) return fatal_;
  if (stopping_) return absl::CancelledError("the coordinator is being destroyed");
  if (recovery_enabled_ && !leaving && !recovery_.serving()) {
    return absl::UnavailableError("servers are being recovered");
  }
  if (membership_.Count(pb::ROLE_PSSERVER) < options_.servers)
    return absl::UnavailableError("a server is lost");
  // Also while a server leaves: what had finished is not all in its state.
  if (queue_.repeats_cancelled()) {
    return absl::UnavailableError("functions that were being repeated have been cancelled");
  }
  // An assignment that is still to be repeated has no place in a position.
  if (queue_.HasAssignments()) return absl::UnavailableError("an assignment is being repeated");
  std::vector<uint32_t> servers;
  for (uint32_t s = 0; s < options_.servers; ++s) servers.push_back(s);
  aborted_ = absl::OkStatus();
  Act(commit_.Begin(checkpoint, servers));
  MU_RETURN_IF_ERROR(aborted_);
  begun_ = queue_.CheckpointPosition();
  const FunctionQueue::RolledBack repeating = queue_.Repeating();
  begun_steps_ = trained_steps_ - repeating.steps;
  begun_samples_ = trained_samples_ - repeating.samples;
  begun_acknowledged_.clear();
  for (const uint32_t server : servers)
    begun_acknowledged_.push_back(failures_.acknowledged(server));
  commit_.PositionTaken(checkpoint);  // whoever asked calls the servers
  return absl::OkStatus();
}

absl::Status Runtime::CheckpointSaved(CheckpointNumber checkpoint, const absl::Status& saved,
                                      pb::CheckpointProto* manifest) {
  MutexLock lock(&mutex_);
  for (uint32_t s = 0; s < options_.servers; ++s) {
    Act(saved.ok() ? commit_.Saved(checkpoint, s) : commit_.SaveFailed(checkpoint, s, saved));
  }
  MU_RETURN_IF_ERROR(aborted_);
  // Of one moment: a call that is scheduled with a state is in both or in neither.
  // What whoever takes the checkpoint says itself goes before what came with calls.
  if (manifest->user_state().empty()) manifest->set_user_state(user_state_);
  pb::JobPositionProto& position = *manifest->mutable_position();
  position.Clear();
  AddQueuePosition(queue_.AfterCuts(begun_), &position);
  for (const auto& [id, leases] : leases_) {
    if (trained_on_.contains(id)) *position.add_datasets() = leases->Position();
  }
  position.set_steps(begun_steps_);
  position.set_samples(begun_samples_);
  for (const uint64_t acknowledged : begun_acknowledged_) position.add_acknowledged(acknowledged);
  return absl::OkStatus();
}

absl::Status Runtime::CheckpointWritten(CheckpointNumber checkpoint, const absl::Status& written) {
  MutexLock lock(&mutex_);
  Act(written.ok() ? commit_.ManifestWritten(checkpoint)
                   : commit_.ManifestFailed(checkpoint, written));
  return aborted_;
}

void Runtime::Act(const CheckpointCommit::Actions& actions) {
  for (const CheckpointAction& action : actions) {
    if (action.kind == CheckpointAction::Kind::kAborted) aborted_ = action.reason;
    if (action.kind != CheckpointAction::Kind::kCommitted) continue;
    queue_.CheckpointCommitted(action.checkpoint, begun_);
    recovery_.Committed(action.checkpoint);
    NoteKept();
  }
}

void Runtime::SetUserState(std::string state) {
  MutexLock lock(&mutex_);
  user_state_ = std::move(state);
}

absl::Status Runtime::StateLoaded(uint64_t token, Generation generation, CheckpointNumber point,
                                  FunctionId next, const std::vector<uint64_t>& updates,
                                  const std::vector<uint64_t>& acknowledged) {
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(EndedLocked());
  if (servers_lost_ != token)
    return absl::UnavailableError("a server was lost while values were loaded");
  if (queue_.unfinished() > 0)
    return absl::UnavailableError("functions were scheduled while values were loaded");
  failures_.Continue(updates, acknowledged.empty() ? updates : acknowledged);
  queue_.StartFrom(point, next);
  Act(recovery_.Loaded(generation, point));
  return absl::OkStatus();
}

Generation Runtime::LeastGeneration() const {
  return std::max(Generation(catalog_.routing().generation()), recovery_.generation());
}

Generation Runtime::NextGeneration() {
  MutexLock lock(&mutex_);
  // Whatever older coordinators gave out is smaller.
  const Generation base((options_.epoch.value() - 1) << 32);
  given_ = std::max({base, LeastGeneration(), given_}).Next();
  recovery_.GivenOut(given_);
  return given_;
}

absl::StatusOr<std::vector<RemoteValue>> Runtime::Resume(CheckpointNumber point,
                                                         const pb::CheckpointProto& manifest,
                                                         const std::set<uint64_t>& datasets) {
  const pb::JobPositionProto& proto = manifest.position();
  MutexLock lock(&mutex_);
  MU_RETURN_IF_ERROR(EndedLocked());
  if (queue_.scheduled()) {
    return absl::FailedPreconditionError(
        "functions have been scheduled already; Restore() comes before them");
  }
  MU_ASSIGN_OR_RETURN(const FunctionQueue::Position position,
                      QueuePositionOf(proto, catalog_.version()));
  std::vector<RemoteValue> values;
  for (const auto& [id, function] : position.unfinished) {
    const InstalledFunction* installed = catalog_.FindFunction(function.work.fingerprint);
    if (installed == nullptr) {
      states_.clear();
      return absl::InvalidArgumentError(absl::StrCat(
          "the checkpoint stopped in a call of a function that this program has not defined, or "
          "defines in another way "
          "(fingerprint ",
          function.work.fingerprint.value(), "); define the same functions before Restore()"));
    }
    std::vector<std::string> names;
    for (const auto& value : installed->proto.returns()) names.push_back(value.name());
    states_[id] =
        std::make_shared<FunctionState>(std::move(names), function.steps, function.work.dataset,
                                        /*first_step=*/function.next_step);
    values.push_back(RemoteValue(id, states_[id]));
    if (function.work.dataset != 0 && !per_worker_.contains(function.work.dataset)) {
      trained_on_.insert(function.work.dataset);
    }
  }
  trained_on_.insert(datasets.begin(), datasets.end());
  queue_.Resume(point, position);
  stats_.steps = trained_steps_ = proto.steps();
  stats_.samples = trained_samples_ = proto.samples();
  user_state_ = manifest.user_state();
  Dispatch();
  return values;
}

uint64_t Runtime::UnboundSteps(uint64_t dataset) const {
  MutexLock lock(&mutex_);
  return queue_.UnboundSteps(dataset);
}

}  // namespace mu
