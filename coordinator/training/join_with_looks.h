// Waits for all that was scheduled, and looks at something else meanwhile.
#pragma once

#include <algorithm>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status.h"
#include "coordinator/cluster/coordinator.h"

namespace mu {

// As Coordinator::Join. `look` is called several times a second, on this thread; OK without waiting
// any longer where it returns false.
inline absl::Status JoinWithLooks(Coordinator& coordinator, const std::function<bool()>& look) {
  // Nearly always nothing is left. Else a server was lost, and steps run again.
  for (absl::Duration pause = absl::Milliseconds(1);;
       pause = std::min(2 * pause, absl::Milliseconds(100))) {
    MU_ASSIGN_OR_RETURN(const bool done, coordinator.Done());
    if (done || !look()) return absl::OkStatus();
    absl::SleepFor(pause);  // between two looks, which nobody announces
  }
}

}  // namespace mu
