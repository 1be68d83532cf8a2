// What is said to servers when they were lost, and what the rest of the coordinator asks of their
// recovery. Calls run on a thread of their own.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/steady_now.h"
#include "common/obs/log.h"
#include "coordinator/cluster/restore_errors.h"
#include "coordinator/cluster/runtime.h"

namespace mu {

void Runtime::EnableRecovery(RecoveryMode mode, RecoveryHooks hooks) {
  MutexLock lock(&mutex_);
  hooks_ = std::move(hooks);
  Step(event::EnableRecovery{mode});
}

uint64_t Runtime::ServersLost() const {
  MutexLock lock(&mutex_);
  return core_.servers_lost();
}

absl::Status Runtime::ServersConfigured(uint64_t token, Generation generation) {
  MutexLock lock(&mutex_);
  if (!core_.servers_configured() && core_.servers_lost() != token) {
    return absl::UnavailableError("a server was lost while the servers were configured");
  }
  Step(event::ServersConfigured{generation});
  return absl::OkStatus();
}

Generation Runtime::NextGeneration() {
  MutexLock lock(&mutex_);
  return core_.NextGeneration();
}

bool Runtime::RoundIsCurrent(const RestoreRound& round) const {
  MutexLock lock(&mutex_);
  return !core_.closed() && core_.recovery().restoring(round.generation);
}

void Runtime::ServerCannotRead(uint64_t token, const absl::Status& error) {
  const auto detail = DetailOf(error);
  if (!detail.has_value()) return;
  MutexLock lock(&mutex_);
  Step(event::ServerCannotRead{token, detail->index(), error});
}

void Runtime::Do(action::Paused&) { paused_ns_ = NowNs(); }

void Runtime::Do(action::RolledBack& a) {
  MU_LOG(WARN, "{} steps of {} functions since {} will run again", a.back.steps, a.back.functions,
         a.checkpoint == kInitialValues ? "the beginning"
                                        : absl::StrCat("checkpoint ", a.checkpoint.value()));
}

void Runtime::Do(action::Restore& a) {
  recovery_.Add([this, round = std::move(a.round)] { RunRound(round); });
}

void Runtime::RunRound(const RestoreRound& round) {
  std::function<absl::StatusOr<RestoredServers>(const RestoreRound&)> restore;
  {
    MutexLock lock(&mutex_);
    if (core_.closed() || !core_.recovery().restoring(round.generation)) return;
    restore = hooks_.restore;
  }
  const absl::StatusOr<RestoredServers> restored = [&] {
    ScopedSpan span(options_.telemetry, "restore",
                    absl::StrCat("generation ", round.generation.value(), ", checkpoint ",
                                 round.checkpoint.value()));
    return restore(round);
  }();
  MutexLock lock(&mutex_);
  if (!restored.ok()) {
    const CallError error = CallError::Of(restored.status());
    const uint32_t server = error.role == pb::ROLE_PSSERVER ? error.index : 0;
    return Step(event::RestoreFailed{server, round.generation, FaultOf(restored.status()), error});
  }
  for (size_t i = 0; i < round.servers.size(); ++i) {
    const RestoreRound::Server& server = round.servers[i];
    Step(event::RestoreDone{server.index, round.generation, server.keep,
                            restored->replies[i].updates(), restored->from});
  }
}

void Runtime::Do(action::SaveForLeave&) {
  recovery_.Add([this, save = hooks_.save] {
    const absl::StatusOr<CheckpointNumber> taken = save();
    MutexLock lock(&mutex_);
    if (!taken.ok() && !core_.closed())
      MU_LOG(ERROR, "no checkpoint before a server leaves: {}", taken.status());
    Step(event::LeaveSaved{taken.ok() ? std::optional<CheckpointNumber>(*taken) : std::nullopt});
  });
}

void Runtime::Do(action::Serving& a) {
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "recovery", paused_ns_, NowNs(),
        absl::StrCat("of servers, until generation ", a.generation.value()));
  }
  for (const MemberFailure& failure : a.back) {
    MU_LOG(INFO, "server {} is back after {:.3f} s", failure.index, failure.recovered_seconds);
  }
}

void Runtime::Do(action::RepeatAssignment& a) {
  recovery_.Add([this, assign = hooks_.assign, a] {
    const absl::Status status = [&] {
      ScopedSpan span(options_.telemetry, "assign_again", a.assignment->variable);
      return assign(a.place, *a.assignment);
    }();
    MutexLock lock(&mutex_);
    Step(event::AssignmentRepeated{a.attempt, CallError::Of(status)});
  });
}

absl::Status Runtime::WaitUntilServing() {
  MutexLock lock(&mutex_);
  while (EndedLocked().ok() && core_.recovery_enabled() && core_.recovery().started() &&
         !core_.whole()) {
    changed_.Wait(&mutex_);
  }
  return EndedLocked();
}

absl::Status Runtime::WaitForRepeats() {
  MutexLock lock(&mutex_);
  while (EndedLocked().ok()) {
    if (!states_.empty()) {
      return absl::FailedPreconditionError("functions are queued or running; Join first");
    }
    if (core_.queue().unfinished() == 0 && !core_.cancelling() &&
        !core_.queue().repeats_cancelled())
      break;
    changed_.Wait(&mutex_);
  }
  return EndedLocked();
}

FunctionId Runtime::BeginAssignment(FunctionId place) {
  MutexLock lock(&mutex_);
  // A place that is taken now would be below the fence.
  while (core_.cancelling() && !core_.closed()) changed_.Wait(&mutex_);
  return core_.BeginAssignment(place);
}

bool Runtime::Assigned(uint64_t token, FunctionId place,
                       std::shared_ptr<const Assignment> assignment) {
  MutexLock lock(&mutex_);
  Actions actions;
  const bool assigned = core_.Assigned(SteadyNow(), token, place, std::move(assignment), &actions);
  Execute(actions);
  return assigned;
}

void Runtime::EndAssignment(FunctionId place) {
  MutexLock lock(&mutex_);
  core_.EndAssignment(place);
}

void Runtime::SetFence(std::function<absl::Status(const pb::RequestContext&)> fence) {
  MutexLock lock(&mutex_);
  fence_ = std::move(fence);
}

void Runtime::SetInterrupt(std::function<void()> interrupt) {
  MutexLock lock(&mutex_);
  interrupt_ = std::move(interrupt);
}

}  // namespace mu
