// What results count for: the position of a checkpoint, and what failures cost.
#include <utility>

#include "coordinator/cluster/runtime.h"

namespace mu {

bool Runtime::OpensRecovery() {
  return std::exchange(leave_opened_, false) || !recovery_.started() || recovery_.serving();
}

void Runtime::CountResult(const StartRun& start, const pb::StepResult& step, bool current,
                          bool delivered) {
  if (!current) {
    if (queue_.IsSuperseded(start.run)) failures_.LateStep(step);
    return;
  }
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  if (function.work.updates && delivered) {
    trained_steps_ += step.samples() > 0 || function.work.dataset == 0 ? 1 : 0;
    trained_samples_ += step.samples();
  }
  const FailureLog::Result result = {.updates = function.work.updates,
                                     .first = delivered,
                                     .last = function.next_step >= function.steps};
  failures_.StepDone(start.function, step, result, SecondsUp());
}

}  // namespace mu
