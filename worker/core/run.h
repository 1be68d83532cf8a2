// What the core knows of one call of a function on this worker, from its arrival until its stream
// ends.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "worker/core/action.h"

namespace mu {

struct WorkerRun {
  CallId call;
  FunctionId function;
  // Of the servers' state in which it was started; 0: not said, which no coordinator does once the
  // servers have a state.
  Generation generation;
  uint32_t next_step = 0;  // at first: the one to begin with
  uint32_t steps = 0;      // they are numbered 0 .. steps-1

  // It ends before its next step, with `reason` (the first one counts). What waits for data of
  // servers is aborted; a push under way is not.
  void Stop(const absl::Status& reason) {
    if (!stopped) why = reason;
    stopped = aborted = true;
  }
  // Its running step is the last; the rest is for another worker. Nothing is aborted before a Stop.
  void HandBack() {
    if (stopped) return;
    stopped = handed_back = true;
  }

  bool stopped = false;
  bool aborted = false;
  bool handed_back = false;
  absl::Status why;
  uint64_t arrival = 0;
};

}  // namespace mu
