// The shell around the pause of functions that change parameters, see update_pause.h.
#include "common/client/applied_full.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::Act(UpdatePause::Change change) {
  switch (change) {
    case UpdatePause::Change::kNone:
      return;
    case UpdatePause::Change::kPaused:
      MU_LOG(WARN,
             "no new function that changes parameters is started: {}. It is freed when two "
             "checkpoints have succeeded; the log says why they fail. A program without a "
             "Checkpointer has to call Checkpoint",
             update_pause_.Describe());
      return;
    case UpdatePause::Change::kResumed:
      MU_LOG(INFO, "functions that change parameters are started again: {}",
             update_pause_.Describe());
      changed_.SignalAll();
      Dispatch();
      return;
  }
}

void Runtime::NoteKept() { Act(update_pause_.CoordinatorKeeps({queue_.kept_bytes(), most_kept_})); }

void Runtime::SetMostKept(uint64_t bytes) {
  MutexLock lock(&mutex_);
  most_kept_ = bytes;
  NoteKept();
}

uint64_t Runtime::uncovered_bytes() const {
  MutexLock lock(&mutex_);
  return queue_.uncovered_bytes();
}

bool Runtime::updates_paused() const {
  MutexLock lock(&mutex_);
  return update_pause_.paused() && fatal_.ok() && !stopping_;
}

absl::Status Runtime::WaitForUpdates() {
  MutexLock lock(&mutex_);
  while (update_pause_.paused() && fatal_.ok() && !stopping_) changed_.Wait(&mutex_);
  return EndedLocked();
}

bool Runtime::NoteRefusedLocked(FunctionId function, const absl::Status& status) {
  const auto detail = DetailOf(status);
  if (!IsAppliedFull(status) || !detail.has_value()) return false;
  Act(update_pause_.ServerRefused(detail->index(), function));
  return true;
}

bool Runtime::NoteRefused(FunctionId function, const absl::Status& status) {
  MutexLock lock(&mutex_);
  return NoteRefusedLocked(function, status);
}

}  // namespace mu
