// Checkpoints: when one is begun, what it says of the job, and what its end means.
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"
#include "coordinator/core/protections.h"

namespace mu {

void Core::BeginCheckpoint(TaskId task) {
  BeginWork(Work::Kind::kSave, task);
  last_checkpoint_ = work_.point = last_checkpoint_.Next();
  // A task has waited until all of this holds; a server that leaves does not wait.
  const absl::Status refused = [&]() -> absl::Status {
    if (!AllServersAreThere()) return absl::UnavailableError("a server is lost");
    // What had finished is not all in the servers' state.
    if (queue_.repeats_cancelled())
      return absl::UnavailableError("functions that were being repeated have been cancelled");
    if (queue_.HasAssignments()) return absl::UnavailableError("an assignment is being repeated");
    return absl::OkStatus();
  }();
  if (!refused.ok()) return CheckpointEnded(refused);
  std::vector<uint32_t> servers;
  for (uint32_t s = 0; s < options_.servers; ++s) servers.push_back(s);
  Act(commit_.Begin(work_.point, servers));
}

void Core::CheckpointEnded(const absl::Status& status) {
  const Work work = EndWork();
  if (work.task != TaskId()) return Answer(work.task, status);
  if (!status.ok() && !closed_) {
    Note(action::Note::Level::kError,
         absl::StrCat("no checkpoint before a server leaves: ", status.ToString()));
  }
  leave_saved_ = {status.ok() ? std::optional<CheckpointNumber>(work.point) : std::nullopt};
}

void Core::On(event::Saved& e) {
  Act(e.status.ok() ? commit_.Saved(e.checkpoint, e.server)
                    : commit_.SaveFailed(e.checkpoint, e.server, e.status));
}

void Core::On(event::ManifestWritten& e) {
  Act(e.status.ok() ? commit_.ManifestWritten(e.checkpoint)
                    : commit_.ManifestFailed(e.checkpoint, e.status));
}

void Core::Act(const CheckpointCommit::Actions& actions) {
  using Kind = CheckpointAction::Kind;
  for (const CheckpointAction& commit : actions) {
    switch (commit.kind) {
      case Kind::kTakePosition: {
        begun_ = queue_.CheckpointPosition();
        const FunctionQueue::RolledBack repeating = queue_.Repeating();
        begun_job_ = {.steps = trained_steps_ - repeating.steps,
                      .samples = trained_samples_ - repeating.samples};
        for (uint32_t s = 0; s < options_.servers; ++s)
          begun_job_.acknowledged.push_back(failures_.acknowledged(s));
        Act(commit_.PositionTaken(commit.checkpoint));
        break;
      }
      case Kind::kSave:
        // One action for all servers.
        if (commit.server == 0) {
          Do(action::Save{commit.checkpoint, work_.task, *configured_});
        }
        break;
      case Kind::kWriteManifest:
        if (MU_BROKEN(late_position)) begun_ = queue_.CheckpointPosition();
        Do(action::WriteManifest{commit.checkpoint});
        break;
      case Kind::kCommitted:
        queue_.CheckpointCommitted(commit.checkpoint, begun_);
        recovery_.Committed(commit.checkpoint);
        NoteKept();
        Do(action::Committed{commit.checkpoint});
        CheckpointEnded(absl::OkStatus());
        dispatch_ = true;
        break;
      case Kind::kAborted:
        Do(action::Aborted{commit.checkpoint, commit.reason});
        CheckpointEnded(commit.reason);
        break;
    }
  }
}

JobPosition Core::PositionAfterCuts() const {
  JobPosition position = begun_job_;
  position.functions = queue_.AfterCuts(begun_);
  position.taken_steps = queue_.taken_steps();
  return position;
}

}  // namespace mu
