// Assignments to variables: their place among the functions, and their repeats after a loss of
// servers.
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(100);

}  // namespace

FunctionId Runtime::BeginAssignment(FunctionId place) {
  MutexLock lock(&mutex_);
  // A place that is taken now would be below the fence.
  while (cancelling_ && !stopping_) changed_.Wait(&mutex_);
  return queue_.AssignmentOpen(place) ? place : queue_.BeginAssignment();
}

bool Runtime::Assigned(uint64_t token, FunctionId place,
                       std::shared_ptr<const Assignment> assignment) {
  MutexLock lock(&mutex_);
  if (!queue_.AssignmentOpen(place)) return false;
  if (recovery_enabled_) {
    if (servers_lost_ != token || (recovery_.started() && !recovery_.serving())) return false;
  } else if (queue_.scheduled()) {
    queue_.EndAssignment(place);
    return true;
  }
  // Before anything was scheduled, recovery may still be enabled: then it belongs to what a lost
  // server makes repeat.
  queue_.Assigned(place, std::move(assignment));
  NoteKept();
  return true;
}

void Runtime::EndAssignment(FunctionId place) {
  MutexLock lock(&mutex_);
  queue_.EndAssignment(place);
}

void Runtime::RepeatAssignment(FunctionId id, std::shared_ptr<const Assignment> assignment) {
  std::function<absl::Status(FunctionId, const Assignment&)> assign;
  uint64_t token = 0;
  {
    MutexLock lock(&mutex_);
    assign = hooks_.assign;
    token = servers_lost_;
  }
  const absl::Status status = [&] {
    ScopedSpan span(options_.telemetry, "assign_again", assignment->variable);
    return assign(id, *assignment);
  }();
  MutexLock lock(&mutex_);
  if (stopping_ || servers_lost_ != token) return;
  if (status.ok()) {
    queue_.AssignmentDone(id);
    changed_.SignalAll();
    return Dispatch();
  }
  if (KindOf(status) != pb::ERROR_MACHINE && KindOf(status) != pb::ERROR_STALE)
    return FailLocked(status);
  MU_LOG(WARN, "the assignment of '{}' is repeated again: {}", assignment->variable, status);
  changed_.WaitFor(&mutex_, kRetry);
}

}  // namespace mu
