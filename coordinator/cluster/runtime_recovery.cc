// What happens when a parameter server is lost: everything goes back to one state and what that lacks runs again.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::SetRecovery(std::function<absl::Status()> recover) {
  MutexLock lock(&mutex_);
  recover_ = std::move(recover);
}

FunctionQueue::Position Runtime::CheckpointPosition() {
  MutexLock lock(&mutex_);
  return queue_.CheckpointPosition();
}

void Runtime::CheckpointCommitted(const FunctionQueue::Position& position) {
  MutexLock lock(&mutex_);
  queue_.CheckpointCommitted(queue_.points().back().Next(), position);
}

size_t Runtime::uncovered_functions() const {
  MutexLock lock(&mutex_);
  return queue_.uncovered();
}

absl::Status Runtime::HoldFunctions(uint64_t* token) {
  MutexLock lock(&mutex_);
  while (recovering_ && fatal_.ok() && !stopping_) changed_.Wait(&mutex_);
  held_ = true;
  *token = servers_lost_;
  while (!queue_.Quiescent() && held_ && fatal_.ok() && !stopping_) changed_.Wait(&mutex_);
  if (!fatal_.ok()) return fatal_;
  if (stopping_) return absl::CancelledError("the coordinator is being destroyed");
  if (servers_lost_ != *token) return absl::UnavailableError("a server was lost while functions were ending");
  return absl::OkStatus();
}

bool Runtime::HeldSince(uint64_t token) const {
  MutexLock lock(&mutex_);
  return held_ && servers_lost_ == token;
}

void Runtime::Continue() {
  MutexLock lock(&mutex_);
  held_ = false;
  Dispatch();
}

absl::Status Runtime::WaitUntilServing() {
  MutexLock lock(&mutex_);
  while (recovering_ && fatal_.ok() && !stopping_) changed_.Wait(&mutex_);
  if (stopping_) return absl::CancelledError("the coordinator is being destroyed");
  return fatal_;
}

void Runtime::ServerLost(const Member& member, const std::string& kind, const std::string& message) {
  if (stopping_ || !fatal_.ok()) return;
  ++servers_lost_;
  held_ = false;  // a checkpoint that is being taken will not be complete
  if (recover_ != nullptr) {
    if (!recovering_) {
      recovering_ = true;
      const FunctionQueue::RolledBack back = queue_.RollBack(queue_.points().back());
      stats_.failures.back().steps_repeated = back.steps;
      MU_LOG(WARN, "server {} is lost: {} steps of {} functions since the last checkpoint will run again",
             member.index, back.steps, back.functions);
      // Nobody wants their results any more; the workers stop before their next step.
      for (auto& [id, link] : links_) {
        for (auto& [run, call] : link->runs) call->Cancel();
      }
    }
    changed_.SignalAll();
    return;
  }
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  detail.set_role(pb::ROLE_PSSERVER);
  detail.set_index(member.index);
  fatal_ = WithDetail(
      absl::UnavailableError(absl::StrCat("parameter server ", member.index, " (pid ", member.pid, ", ", member.address,
                                          ") is lost (", kind, "): ", message)),
      detail);
  MU_LOG(ERROR, "{}", fatal_.message());
  for (FunctionId id : queue_.CancelAll()) FinishFunction(id, fatal_);
  changed_.SignalAll();
}

void Runtime::TryRecover() {
  std::function<absl::Status()> recover;
  uint64_t lost_before = 0;
  {
    MutexLock lock(&mutex_);
    recover = recover_;
    lost_before = servers_lost_;
  }
  const absl::Status status = recover();
  MutexLock lock(&mutex_);
  if (stopping_) return;
  if (!status.ok() || servers_lost_ != lost_before) {
    // Another loss meanwhile, or a server that does not answer: the monitor comes back when all are there.
    MU_LOG(WARN, "recovery of the servers did not succeed and is tried again: {}", status);
    if (KindOf(status) == pb::ERROR_MACHINE || status.ok()) return;
    fatal_ = status;
    for (FunctionId id : queue_.CancelAll()) FinishFunction(id, fatal_);
    changed_.SignalAll();
    return;
  }
  recovering_ = false;
  for (MemberFailure& failure : stats_.failures) {
    if (failure.role == pb::ROLE_PSSERVER && failure.recovered_seconds < 0) {
      failure.recovered_seconds = SecondsUp() - failure.at_seconds;
      MU_LOG(INFO, "server {} is back after {:.3f} s", failure.index, failure.recovered_seconds);
    }
  }
  changed_.SignalAll();
  Dispatch();
}

}  // namespace mu
