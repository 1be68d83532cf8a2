// What the worker's core wants to be done. The shell carries actions out in their order and decides
// nothing.
#pragma once

#include <cstdint>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/base/ids.h"

namespace mu {

// A call that waits for its answer; the shell's name for it. Never 0.
using CallId = StrongId<struct CallIdTag, uint64_t>;

namespace worker_action {

// The executing run's next step, in which nothing has been done yet, or again the one that a server
// refused since its gradients were too late. Answered by StepEnded.
struct RunStep {
  CallId run;
  uint32_t step = 0;
};
// All results that are held of this run's steps go to its caller, in one message.
struct SendResults {
  CallId run;
};
// The call of a run ends. `handed_back`: with a message before it, that the steps without a result
// are for another worker.
struct EndRun {
  CallId run;
  absl::Status status;
  bool handed_back = false;
};
// A cancellation is complete: nothing of it runs here any more.
struct Cancelled {
  CallId call;
};
// The pull or push under way ends soon, with CANCELLED.
struct InterruptCall {};
// The routing that Configure was given is the one to use.
struct UseRouting {};
// Functions, datasets and the routing of the epoch before are not valid any more.
struct ForgetInstalled {};

}  // namespace worker_action

using WorkerAction =
    std::variant<worker_action::RunStep, worker_action::SendResults, worker_action::EndRun,
                 worker_action::Cancelled, worker_action::InterruptCall, worker_action::UseRouting,
                 worker_action::ForgetInstalled>;
// One step of a run makes one or two; no memory is allocated for them.
using WorkerActions = absl::InlinedVector<WorkerAction, 4>;

}  // namespace mu
