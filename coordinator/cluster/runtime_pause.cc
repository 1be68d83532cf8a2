// Pauses of functions that change parameters for want of memory, see update_pause.h.
#include "common/client/applied_full.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::SetMostKept(uint64_t bytes) { PostStep(event::MostKept{bytes}); }

uint64_t Runtime::uncovered_bytes() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.queue().uncovered_bytes();
  });
}

bool Runtime::updates_paused() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.updates_paused();
  });
}

absl::Status Runtime::WaitForUpdates() {
  absl::Status ended;
  loop_.Await([&] {
    loop_.AssertHeld();
    ended = EndedNow();
    return !core_.updates_paused();
  });
  return ended;
}

bool Runtime::NoteRefused(FunctionId function, const absl::Status& status) {
  const auto detail = DetailOf(status);
  if (!IsAppliedFull(status) || !detail.has_value()) return false;
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::AppliedFull{detail->index(), function});
  });
  return true;
}

}  // namespace mu
