// The shell around the recovery of servers: its events and actions. What takes its time is in
// runtime_recoverer.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

absl::Status MachineError(absl::Status status, std::optional<uint32_t> server = std::nullopt) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  if (server.has_value()) {
    detail.set_role(pb::ROLE_PSSERVER);
    detail.set_index(*server);
  }
  return WithDetail(std::move(status), detail);
}

}  // namespace

void Runtime::EnableRecovery(RecoveryMode mode, RecoveryHooks hooks) {
  MutexLock lock(&mutex_);
  hooks_ = std::move(hooks);
  if (recovery_enabled_) {
    if (mode != recovery_.mode()) {
      const bool all = recovery_.mode() == RecoveryMode::kAll;
      MU_LOG(WARN, "recovery of {} is already enabled; it stays, and recovery of {} is not begun",
             all ? "all servers" : "single servers", all ? "single servers" : "all servers");
    }
    return;
  }
  recovery_enabled_ = true;
  recovery_ = Recovery({.servers = options_.servers, .mode = mode});
  recovery_.GivenOut(given_);
  const bool nothing_kept = queue_.scheduled() && queue_.points().back() == kInitialValues;
  if (nothing_kept) queue_.ForgetPoints();
  if (configured_.has_value()) Act(recovery_.Start(*configured_, queue_.points()));
}

uint64_t Runtime::ServersLost() const {
  MutexLock lock(&mutex_);
  return servers_lost_;
}

absl::Status Runtime::ServersConfigured(uint64_t token, Generation generation) {
  MutexLock lock(&mutex_);
  if (!configured_.has_value() && servers_lost_ != token) {
    return absl::UnavailableError("a server was lost while the servers were configured");
  }
  const bool first = !configured_.has_value();
  configured_ = generation;
  if (first && recovery_enabled_) Act(recovery_.Start(generation, queue_.points()));
  return absl::OkStatus();
}

size_t Runtime::uncovered_functions() const {
  MutexLock lock(&mutex_);
  return queue_.uncovered();
}

bool Runtime::RoundIsCurrent(const RestoreRound& round) const {
  MutexLock lock(&mutex_);
  return !stopping_ && recovery_.restoring(round.generation);
}

absl::Status Runtime::WaitUntilServing() {
  MutexLock lock(&mutex_);
  while (recovery_enabled_ && recovery_.started() &&
         (!recovery_.serving() || queue_.HasAssignments() || queue_.repeats_cancelled()) &&
         fatal_.ok() && !stopping_) {
    changed_.Wait(&mutex_);
  }
  return EndedLocked();
}

absl::Status Runtime::WaitForRepeats() {
  MutexLock lock(&mutex_);
  while (fatal_.ok() && !stopping_) {
    if (!states_.empty()) {
      return absl::FailedPreconditionError("functions are queued or running; Join first");
    }
    if (queue_.unfinished() == 0 && !cancelling_ && !queue_.repeats_cancelled()) break;
    changed_.Wait(&mutex_);
  }
  return EndedLocked();
}

bool Runtime::begun() const {
  MutexLock lock(&mutex_);
  return queue_.scheduled();
}

void Runtime::StopRuns() {
  queue_.StopRuns();
  // Nobody wants their results any more; the workers stop before their next step.
  for (auto& [id, link] : links_) {
    for (auto& [run, call] : link->runs) call->Cancel();
  }
}

void Runtime::ServerLost(const Member& member, const std::string& kind,
                         const std::string& message) {
  if (stopping_ || !fatal_.ok()) return;
  ++servers_lost_;
  round_.reset();
  Act(commit_.ServerLost(member.index));
  if (recovery_enabled_) {
    if (interrupt_ != nullptr) interrupt_();
    Act(recovery_.ServerLost(member.index));
    Act(update_pause_.ServerGone(member.index));
    for (const auto& call : leaving_[member.index])
      call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
    leaving_.erase(member.index);
    changed_.SignalAll();
    return;
  }
  FailLocked(MachineError(absl::UnavailableError(absl::StrCat(
                              "parameter server ", member.index, " (pid ", member.pid, ", ",
                              member.address, ") is lost (", kind, "): ", message)),
                          member.index));
}

void Runtime::Act(const Recovery::Actions& actions) {
  using Kind = RecoveryAction::Kind;
  for (const RecoveryAction& action : actions) {
    MU_LOG(DEBUG, "recovery: {}", ToString(action));
    switch (action.kind) {
      case Kind::kPause:
        round_error_ = absl::OkStatus();
        paused_ns_ = NowNs();
        StopRuns();
        break;
      case Kind::kRollBack: {
        const FunctionQueue::RolledBack back = queue_.RollBack(action.checkpoint);
        failures_.RolledBack(back);
        MU_LOG(WARN, "{} steps of {} functions since {} will run again", back.steps, back.functions,
               action.checkpoint == kInitialValues
                   ? "the beginning"
                   : absl::StrCat("checkpoint ", action.checkpoint.value()));
        break;
      }
      case Kind::kRestore:
      case Kind::kKeep:
        if (!round_.has_value() || round_->generation != action.generation) {
          round_.emplace();
          round_->generation = action.generation;
        }
        if (action.kind == Kind::kRestore) round_->checkpoint = action.checkpoint;
        round_->servers.push_back({action.server, action.kind == Kind::kKeep});
        break;
      case Kind::kTakeCheckpoint:
        save_for_leave_ = true;
        break;
      case Kind::kLetGo: {
        if (const auto member = membership_.Find(pb::ROLE_PSSERVER, action.server)) {
          membership_.Remove(member->role, member->index, member->incarnation);
          departed_.Insert(member->incarnation.value());
          failures_.ServerLost({member->role, member->index, "left", SecondsUp(), "SIGTERM"},
                               std::exchange(leave_opened_, false));
          MU_LOG(INFO, "server {} leaves", action.server);
          ++servers_lost_;
          Act(update_pause_.ServerGone(action.server));
        }
        for (const auto& call : leaving_[action.server]) {
          call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
        }
        leaving_.erase(action.server);
        break;
      }
      case Kind::kReplace:
        Expel(action.server, round_error_);
        break;
      case Kind::kResume:
        ServersBack();
        break;
      case Kind::kGiveUp:
        FailLocked(MachineError(absl::Status(
            absl::StatusCode::kDataLoss,
            absl::StrCat("the servers' state is lost: there is no checkpoint that could be "
                         "restored and whose functions "
                         "could be repeated",
                         round_error_.ok() ? ""
                                           : absl::StrCat("; the last that was tried: ",
                                                          std::string(round_error_.message()))))));
        break;
    }
  }
  changed_.SignalAll();
}

void Runtime::Expel(uint32_t server, const absl::Status& error) {
  const auto member = membership_.Find(pb::ROLE_PSSERVER, server);
  if (!member.has_value()) return;
  const std::string why(error.message());
  membership_.Expel(member->role, member->index, member->incarnation, why);
  // The process ends when it hears of this; it may not hear.
  old_leases_.Add(member->pid, member->last_heartbeat + options_.timeout);
  MemberLost(*member, "cannot_read", why);
}

void Runtime::ServerCannotRead(uint64_t token, const absl::Status& error) {
  const auto detail = DetailOf(error);
  MutexLock lock(&mutex_);
  if (!recovery_enabled_ || servers_lost_ != token || !detail.has_value() || !fatal_.ok() ||
      stopping_) {
    return;
  }
  Expel(detail->index(), error);
}

void Runtime::ServersBack() {
  leave_opened_ = false;
  if (options_.telemetry->tracing()) {
    options_.telemetry->AddAsyncSpan(
        "recovery", paused_ns_, NowNs(),
        absl::StrCat("of servers, until generation ", recovery_.generation().value()));
  }
  for (const MemberFailure& failure : failures_.ServersBack(SecondsUp())) {
    MU_LOG(INFO, "server {} is back after {:.3f} s", failure.index, failure.recovered_seconds);
  }
  Dispatch();
}

void Runtime::Superseded(uint64_t epoch) {
  MutexLock lock(&mutex_);
  newer_epoch_ = std::max(newer_epoch_, epoch);
  Act(commit_.Superseded());
  if (interrupt_ != nullptr) interrupt_();
  FailLocked(MachineError(absl::AbortedError(absl::StrCat(
      "a newer coordinator (epoch ", newer_epoch_, ") has taken over this job; this one, of epoch ",
      options_.epoch.value(), ", ends without saving anything"))));
}

bool Runtime::IsSuperseded() {
  const uint64_t newest = options_.newest_epoch != nullptr ? options_.newest_epoch() : 0;
  MutexLock lock(&mutex_);
  newer_epoch_ = std::max(newer_epoch_, newest);
  return newer_epoch_ > options_.epoch.value();
}

}  // namespace mu
