// Pauses of functions that change parameters for want of memory, see update_pause.h.
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

}  // namespace mu
