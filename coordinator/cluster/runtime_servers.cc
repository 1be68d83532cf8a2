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
  loop_.Ask([&] {
    loop_.AssertHeld();
    hooks_ = std::move(hooks);
    Step(event::EnableRecovery{mode});
  });
}

uint64_t Runtime::ServersLost() const {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.servers_lost();
  });
}

absl::Status Runtime::ServersConfigured(uint64_t token, Generation generation) {
  return loop_.Ask([&]() -> absl::Status {
    loop_.AssertHeld();
    if (!core_.servers_configured() && core_.servers_lost() != token)
      return absl::UnavailableError("a server was lost while the servers were configured");
    Step(event::ServersConfigured{generation});
    return absl::OkStatus();
  });
}

Generation Runtime::NextGeneration() {
  return loop_.Ask([this] {
    loop_.AssertHeld();
    return core_.NextGeneration();
  });
}

bool Runtime::RoundIsCurrent(const RestoreRound& round) const {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    return !core_.closed() && core_.recovery().restoring(round.generation);
  });
}

void Runtime::ServerCannotRead(uint64_t token, const absl::Status& error) {
  const auto detail = DetailOf(error);
  if (!detail.has_value()) return;
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::ServerCannotRead{token, detail->index(), error});
  });
}

void Runtime::Do(action::Paused&) { paused_ns_ = NowNs(); }

void Runtime::Do(action::RolledBack& a) {
  MU_LOG(WARN, "{} steps of {} functions since {} will run again", a.back.steps, a.back.functions,
         a.checkpoint == kInitialValues ? "the beginning"
                                        : absl::StrCat("checkpoint ", a.checkpoint.value()));
}

void Runtime::Do(action::Restore& a) {
  recovery_.Add([this, restore = hooks_.restore, round = std::move(a.round)] {
    if (RoundIsCurrent(round)) RunRound(round, restore);
  });
}

void Runtime::RunRound(const RestoreRound& round, const Restore& restore) {
  const absl::StatusOr<RestoredServers> restored = [&] {
    ScopedSpan span(options_.telemetry, "restore",
                    absl::StrCat("generation ", round.generation.value(), ", checkpoint ",
                                 round.checkpoint.value()));
    return restore(round);
  }();
  if (!restored.ok()) {
    const CallError error = CallError::Of(restored.status());
    const uint32_t server = error.role == pb::ROLE_PSSERVER ? error.index : 0;
    return PostStep(
        event::RestoreFailed{server, round.generation, FaultOf(restored.status()), error});
  }
  for (size_t i = 0; i < round.servers.size(); ++i) {
    const RestoreRound::Server& server = round.servers[i];
    PostStep(event::RestoreDone{server.index, round.generation, server.keep,
                                restored->replies[i].updates(), restored->from});
  }
}

void Runtime::Do(action::SaveForLeave&) {
  recovery_.Add([this, save = hooks_.save] {
    const absl::StatusOr<CheckpointNumber> taken = save();
    if (!taken.ok() && !absl::IsCancelled(taken.status()))
      MU_LOG(ERROR, "no checkpoint before a server leaves: {}", taken.status());
    PostStep(
        event::LeaveSaved{taken.ok() ? std::optional<CheckpointNumber>(*taken) : std::nullopt});
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
    PostStep(event::AssignmentRepeated{a.attempt, CallError::Of(status)});
  });
}

absl::Status Runtime::WaitUntilServing() {
  absl::Status ended;
  loop_.Await([&] {
    loop_.AssertHeld();
    ended = EndedNow();
    return !ended.ok() || !core_.recovery_enabled() || !core_.recovery().started() || core_.whole();
  });
  return ended;
}

absl::Status Runtime::WaitForRepeats() {
  absl::Status result;
  loop_.Await([&] {
    loop_.AssertHeld();
    result = EndedNow();
    if (result.ok() && !states_.empty())
      result = absl::FailedPreconditionError("functions are queued or running; Join first");
    return !result.ok() || (core_.queue().unfinished() == 0 && !core_.cancelling() &&
                            !core_.queue().repeats_cancelled());
  });
  return result;
}

FunctionId Runtime::BeginAssignment(FunctionId place) {
  loop_.Await([&] {
    loop_.AssertHeld();
    // A place that is taken now would be below the fence.
    if (Cancelling()) return false;
    place = core_.BeginAssignment(place);
    return true;
  });
  return place;
}

bool Runtime::Assigned(uint64_t token, FunctionId place,
                       std::shared_ptr<const Assignment> assignment) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    Actions actions;
    const bool assigned =
        core_.Assigned(SteadyNow(), token, place, std::move(assignment), &actions);
    Execute(actions);
    loop_.LookAgain();
    return assigned;
  });
}

void Runtime::EndAssignment(FunctionId place) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    core_.EndAssignment(place);
  });
}

void Runtime::SetFence(std::function<absl::Status(const pb::RequestContext&)> fence) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    fence_ = std::move(fence);
  });
}

void Runtime::SetInterrupt(std::function<void()> interrupt) {
  loop_.Ask([&] {
    loop_.AssertHeld();
    interrupt_ = std::move(interrupt);
  });
}

}  // namespace mu
