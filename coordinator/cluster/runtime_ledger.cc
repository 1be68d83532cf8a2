// What failures cost: which results were repeats, and what the servers acknowledged.
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::NoteRunsOf(WorkerId worker) {
  const std::vector<FunctionId> running = queue_.RunningOn(worker);
  const size_t failure = stats_.failures.size() - 1;
  for (const FunctionId id : running) lost_runs_[id] = failure;
  // Nobody waits for a worker that had nothing to do.
  if (running.empty()) stats_.failures[failure].recovered_seconds = 0;
}

void Runtime::CountResult(const StartRun& start, const pb::StepResult& step, bool current, bool delivered) {
  if (!current) return;
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  if (function.work.updates) {
    // Also those of a repeat: the servers went back and have them again.
    if (acknowledged_.size() < options_.servers) acknowledged_.resize(options_.servers);
    for (int s = 0; s < step.updates_size() && s < static_cast<int>(acknowledged_.size()); ++s) {
      acknowledged_[static_cast<size_t>(s)] += step.updates(s);
    }
    if (delivered) {
      trained_steps_ += step.samples() > 0 || function.work.dataset == 0 ? 1 : 0;
      trained_samples_ += step.samples();
    }
  }
  const auto lost = lost_runs_.find(start.function);
  if (lost == lost_runs_.end()) return;
  MemberFailure& failure = stats_.failures[lost->second];
  if (failure.recovered_seconds < 0) failure.recovered_seconds = SecondsUp() - failure.at_seconds;
  if (step.repeated()) {
    ++failure.steps_repeated;
    failure.samples_repeated += step.samples();
  }
  if (function.next_step >= function.steps) lost_runs_.erase(lost);
}

}  // namespace mu
