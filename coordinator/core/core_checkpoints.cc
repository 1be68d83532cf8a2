// Checkpoints: when one is begun, what it says of the job, and what its end means.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_text.h"
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
  Act(commit_.Begin(work_.point));
}

void Core::CheckpointEnded(const absl::Status& status) {
  const Work work = EndWork();
  if (work.task != TaskId()) return Answer(work.task, status);
  if (!status.ok() && !closed_) {
    Note(Level::kError, "no checkpoint before a server leaves: ", StatusText(status));
  }
  leave_saved_ = {status.ok() ? std::optional<CheckpointNumber>(work.point) : std::nullopt};
}

void Core::Act(const CheckpointCommit::Next& next) {
  using Kind = CheckpointAction::Kind;
  if (!next.has_value()) return;
  switch (next->kind) {
    case Kind::kSave: {
      begun_ = queue_.CheckpointPosition();
      const FunctionQueue::RolledBack repeating = queue_.Repeating();
      begun_job_ = {.steps = trained_steps_ - repeating.steps,
                    .samples = trained_samples_ - repeating.samples};
      for (uint32_t s = 0; s < options_.servers; ++s)
        begun_job_.acknowledged.push_back(failures_.acknowledged(s));
      return Do(action::Save{next->checkpoint, work_.task, *configured_});
    }
    case Kind::kWriteManifest:
      if (MU_BROKEN(late_position)) begun_ = queue_.CheckpointPosition();
      return Do(action::WriteManifest{next->checkpoint});
    case Kind::kCommitted:
      queue_.CheckpointCommitted(next->checkpoint, begun_);
      recovery_.Committed(next->checkpoint);
      NoteKept();
      Do(action::Committed{next->checkpoint, OldestPoint()});
      CheckpointEnded(absl::OkStatus());
      dispatch_ = true;
      return;
    case Kind::kAborted:
      Do(action::Aborted{next->checkpoint, next->reason});
      return CheckpointEnded(next->reason);
  }
}

CheckpointNumber Core::OldestPoint() const {
  const CheckpointNumber oldest = queue_.points().front();
  // One that turned out to be bad leaves recovery with an older one.
  return recovery_.points().empty() ? oldest : std::min(oldest, recovery_.points().front());
}

JobPosition Core::PositionAfterCuts() const {
  JobPosition position = begun_job_;
  position.functions = queue_.AfterCuts(begun_);
  position.taken_steps = queue_.taken_steps();
  // Of now, as the functions' batches are: what has been given to one stays its own.
  OwnSteps& own = position.own_steps.emplace(resumed_steps_.steps());
  for (const auto& [id, leases] : leases_) {
    if (leases.shared() == nullptr)
      own.by_dataset[leases.data().dataset.name()] = leases.steps_taken();
  }
  return position;
}

}  // namespace mu
