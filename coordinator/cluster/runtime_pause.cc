// Pauses of functions that change parameters for want of memory, see update_pause.h.
#include "common/client/applied_full.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::SetMostKept(uint64_t bytes) {
  MutexLock lock(&mutex_);
  Step(event::MostKept{bytes});
}

uint64_t Runtime::uncovered_bytes() const {
  MutexLock lock(&mutex_);
  return core_.queue().uncovered_bytes();
}

bool Runtime::updates_paused() const {
  MutexLock lock(&mutex_);
  return core_.updates_paused();
}

absl::Status Runtime::WaitForUpdates() {
  MutexLock lock(&mutex_);
  while (core_.updates_paused()) changed_.Wait(&mutex_);
  return EndedLocked();
}

bool Runtime::NoteRefused(FunctionId function, const absl::Status& status) {
  const auto detail = DetailOf(status);
  if (!IsAppliedFull(status) || !detail.has_value()) return false;
  MutexLock lock(&mutex_);
  Step(event::AppliedFull{detail->index(), function});
  return true;
}

}  // namespace mu
