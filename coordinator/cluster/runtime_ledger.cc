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

void Runtime::NoteRolledBack(int64_t before) {
  const int64_t more = updates_.rolled_back() - before;
  if (more != 0 && first_failure_ < stats_.failures.size()) stats_.failures[first_failure_].updates_rolled_back += more;
}

void Runtime::CountResult(const StartRun& start, const pb::StepResult& step, bool current, bool delivered) {
  if (!current) return;
  const FunctionQueue::Function& function = *queue_.Find(start.function);
  if (function.work.updates) {
    // Also those of a repeat: the servers went back and have them again.
    const int64_t before = updates_.rolled_back();
    for (int server = 0; server < step.updates_size(); ++server) {
      const uint32_t inherited = server < step.inherited_size() ? step.inherited(server) : 0;
      updates_.StepDone(static_cast<uint32_t>(server), step.updates(server), inherited, delivered);
    }
    NoteRolledBack(before);
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
