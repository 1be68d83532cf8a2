// Checkpoints: what the core wants to be written, and what else it says of the job.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/env/file.h"
#include "common/obs/log.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/checkpoint_manifest.h"
#include "coordinator/cluster/runtime.h"
#include "coordinator/core/job_position.h"

namespace mu {

void Runtime::SetUserState(std::string state) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    user_state_ = std::move(state);
  });
}

std::shared_ptr<TaskState> Runtime::NumberedCheckpoint() {
  auto state = std::make_shared<TaskState>();
  state->claim = [this] { return options_.checkpoints->Claim(begun()); };
  state->clean = [this](const std::string& folder) {
    // A newer coordinator decides over what is in the folder.
    if (IsSuperseded()) return;
    if (const absl::Status emptied = EmptyCheckpointDirectory(folder); !emptied.ok()) {
      MU_LOG(WARN, "what is left of a checkpoint that failed: {}", emptied);
    }
  };
  return state;
}

void Runtime::Do(action::Save& a) {
  const auto task = tasks_.find(a.task);
  saving_ = task != tasks_.end() ? task->second : NumberedCheckpoint();
  const ServerApi::Call save = NewCall(a.generation);
  save_ = save.group;
  saving_ns_ = NowNs();
  work_.Add([this, call = save, number = a.checkpoint, state = saving_] {
    EndCall(call, event::Saved{number, SaveFiles(call, state.get())});
  });
}

absl::Status Runtime::SaveFiles(const ServerApi::Call& call, TaskState* state) {
  ScopedSpan span(options_.telemetry, "checkpoint_save");
  state->manifest.clear_files();
  state->manifest.clear_updates();
  if (state->claim != nullptr && state->folder.empty()) {
    MU_ASSIGN_OR_RETURN(state->folder, state->claim());
  }
  MU_RETURN_IF_ERROR(MakeDirectories(state->folder));
  MU_ASSIGN_OR_RETURN(const auto replies, options_.server_api->Save(call, state->folder));
  for (const pb::SaveReply& reply : replies) {
    *state->manifest.add_files() = reply.file();
    state->manifest.add_updates(reply.updates());
  }
  return absl::OkStatus();
}

void Runtime::AddPosition(pb::CheckpointProto* manifest) const {
  // What whoever takes the checkpoint says itself goes before what came with calls.
  if (manifest->user_state().empty()) manifest->set_user_state(user_state_);
  pb::JobPositionProto& position = *manifest->mutable_position();
  position.Clear();
  const JobPosition job = core_.PositionAfterCuts();
  AddJobPosition(job, &position);
  for (pb::DatasetPositionProto& dataset : core_.DataPositions())
    *position.add_datasets() = std::move(dataset);
  // What a program says of a job that it counts itself stays. Muster's own jobs say nothing: after
  // a loss their steps may have to run again, all of them too.
  if (job.steps > 0) {
    manifest->set_steps(job.steps);
    manifest->set_samples(job.samples);
  }
}

void Runtime::Do(action::WriteManifest& a) {
  pb::CheckpointProto& manifest = saving_->manifest;
  {
    ScopedSpan span(options_.telemetry, "checkpoint_position");
    AddPosition(&manifest);
  }
  manifest.set_format_version(kCheckpointFormat);
  manifest.set_job(options_.job.value());
  manifest.set_epoch(options_.epoch.value());
  manifest.set_number(a.checkpoint.value());
  manifest.set_job_fingerprint(options_.job_fingerprint);
  if (const auto routing = catalog_.routed(); routing != nullptr) {
    *manifest.mutable_variables() = routing->variables();
    *manifest.mutable_tables() = routing->tables();
  }
  work_.Add([this, number = a.checkpoint, state = saving_] {
    ScopedSpan span(options_.telemetry, "checkpoint_manifest");
    if (IsSuperseded()) return;  // the core has aborted the checkpoint
    const absl::Status written = mu::WriteManifest(state->folder, state->manifest);
    loop_.Post([this, number, state, written] {
      loop_.AssertHeld();
      // Servers may go back to it from the commit on.
      if (written.ok() && state == saving_) options_.checkpoints->Add(number, state->folder);
      Step(event::ManifestWritten{number, written});
    });
  });
}

void Runtime::Do(action::Committed& a) {
  options_.checkpoints->Forget(a.oldest);
  counters_.Checkpoint()->Count(saving_ns_, NowNs());
  last_checkpoint_seconds_ = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  last_checkpoint_bytes_ = 0;
  if (saving_ != nullptr) {
    for (const pb::CheckpointFileProto& file : saving_->manifest.files())
      last_checkpoint_bytes_ += static_cast<double>(file.bytes());
  }
  saving_ = nullptr;
}

void Runtime::Do(action::Aborted& a) {
  options_.checkpoints->Remove(a.checkpoint);
  if (!core_.closed()) counters_.CheckpointFailures()->Add();
  if (save_ != nullptr) save_->Cancel();  // servers need not write the rest
  const std::shared_ptr<TaskState> state = std::exchange(saving_, nullptr);
  const bool of_task = std::any_of(tasks_.begin(), tasks_.end(),
                                   [&](const auto& task) { return task.second == state; });
  if (state == nullptr || of_task) return;  // its end cleans up
  work_.Add([state] {
    if (state->clean != nullptr && !state->folder.empty()) state->clean(state->folder);
  });
}

}  // namespace mu
