// The shell around the recovery of servers: its actions, and the thread that does what takes its time.
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

constexpr absl::Duration kRetry = absl::Milliseconds(100);

absl::Status MachineError(absl::Status status, std::optional<uint32_t> server = std::nullopt) {
  pb::ErrorDetail detail;
  detail.set_kind(pb::ERROR_MACHINE);
  if (server.has_value()) {
    detail.set_role(pb::ROLE_PSSERVER);
    detail.set_index(*server);
  }
  return WithDetail(std::move(status), detail);
}

// No other try will find these files different.
bool IsBadCheckpoint(const absl::Status& status) { return absl::IsDataLoss(status) || absl::IsNotFound(status); }

}  // namespace

void Runtime::EnableRecovery(RecoveryMode mode, RecoveryHooks hooks) {
  MutexLock lock(&mutex_);
  hooks_ = std::move(hooks);
  if (recovery_enabled_) return;
  recovery_enabled_ = true;
  recovery_ = Recovery({.servers = options_.servers, .mode = mode});
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
  while (recovery_enabled_ && recovery_.started() && (!recovery_.serving() || queue_.HasAssignments()) &&
         fatal_.ok() && !stopping_) {
    changed_.Wait(&mutex_);
  }
  if (stopping_) return absl::CancelledError("the coordinator is being destroyed");
  return fatal_;
}

void Runtime::StopRuns() {
  queue_.StopRuns();
  // Nobody wants their results any more; the workers stop before their next step.
  for (auto& [id, link] : links_) {
    for (auto& [run, call] : link->runs) call->Cancel();
  }
}

void Runtime::ServerLost(const Member& member, const std::string& kind, const std::string& message) {
  if (stopping_ || !fatal_.ok()) return;
  ++servers_lost_;
  round_.reset();
  Act(commit_.ServerLost(member.index));
  if (recovery_enabled_) {
    if (hooks_.interrupt != nullptr) hooks_.interrupt();
    if (!recovery_.started() || recovery_.serving()) first_failure_ = stats_.failures.size() - 1;
    Act(recovery_.ServerLost(member.index));
    for (const auto& call : leaving_[member.index]) call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
    leaving_.erase(member.index);
    changed_.SignalAll();
    return;
  }
  FailLocked(MachineError(
      absl::UnavailableError(absl::StrCat("parameter server ", member.index, " (pid ", member.pid, ", ", member.address,
                                          ") is lost (", kind, "): ", message)),
      member.index));
}

void Runtime::Act(const Recovery::Actions& actions) {
  using Kind = RecoveryAction::Kind;
  for (const RecoveryAction& action : actions) {
    MU_LOG(DEBUG, "recovery: {}", ToString(action));
    switch (action.kind) {
      case Kind::kPause:
        round_error_ = absl::OkStatus();
        StopRuns();
        break;
      case Kind::kRollBack: {
        const FunctionQueue::RolledBack back = queue_.RollBack(action.checkpoint);
        if (first_failure_ < stats_.failures.size()) {
          stats_.failures[first_failure_].steps_repeated += back.steps;
          stats_.failures[first_failure_].samples_repeated += back.samples;
        }
        MU_LOG(WARN, "{} steps of {} functions since {} will run again", back.steps, back.functions,
               action.checkpoint == kInitialValues ? "the beginning"
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
          departed_.insert(member->incarnation.value());
          stats_.failures.push_back({member->role, member->index, "left", SecondsUp(), "SIGTERM"});
          MU_LOG(INFO, "server {} leaves", action.server);
          ++servers_lost_;
        }
        for (const auto& call : leaving_[action.server]) {
          call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
        }
        leaving_.erase(action.server);
        break;
      }
      case Kind::kResume:
        ServersBack();
        break;
      case Kind::kGiveUp:
        FailLocked(MachineError(absl::Status(
            absl::StatusCode::kDataLoss,
            absl::StrCat("the servers' state is lost: there is no checkpoint that could be restored and whose functions "
                         "could be repeated",
                         round_error_.ok() ? "" : absl::StrCat("; the last that was tried: ",
                                                               std::string(round_error_.message()))))));
        break;
    }
  }
  changed_.SignalAll();
}

void Runtime::ServersBack() {
  for (MemberFailure& failure : stats_.failures) {
    if (failure.role != pb::ROLE_PSSERVER || failure.recovered_seconds >= 0) continue;
    failure.recovered_seconds = SecondsUp() - failure.at_seconds;
    MU_LOG(INFO, "server {} is back after {:.3f} s", failure.index, failure.recovered_seconds);
  }
  Dispatch();
}

void Runtime::Recoverer() {
  while (true) {
    std::optional<RestoreRound> round;
    bool save = false;
    std::optional<FunctionId> assignment;
    std::shared_ptr<const Assignment> value;
    {
      MutexLock lock(&mutex_);
      while (!stopping_) {
        if (fatal_.ok()) {
          if (absl::Now() >= retry_at_) {
            retry_at_ = absl::InfiniteFuture();
            Act(recovery_.Retry());
          }
          if (round_.has_value() || save_for_leave_) break;
          if (recovery_.serving() && !cancelling_ && (assignment = queue_.NextAssignment()).has_value()) break;
        }
        if (retry_at_ == absl::InfiniteFuture() || !fatal_.ok()) {
          changed_.Wait(&mutex_);
        } else {
          changed_.WaitFor(&mutex_, std::max(absl::ZeroDuration(), retry_at_ - absl::Now()));
        }
      }
      if (stopping_) return;
      round.swap(round_);
      if (!round.has_value()) std::swap(save, save_for_leave_);
      if (!round.has_value() && !save) value = queue_.Find(*assignment)->work.assignment;
    }
    if (round.has_value()) {
      RunRound(*round);
    } else if (save) {
      SaveForLeave();
    } else {
      RepeatAssignment(*assignment, std::move(value));
    }
  }
}

void Runtime::RunRound(const RestoreRound& round) {
  std::function<absl::StatusOr<std::vector<pb::RestoreReply>>(const RestoreRound&)> restore;
  {
    MutexLock lock(&mutex_);
    restore = hooks_.restore;
  }
  const absl::StatusOr<std::vector<pb::RestoreReply>> replies = restore(round);
  MutexLock lock(&mutex_);
  // A server that was cut off may serve until its lease runs out: what replaces it waits for that.
  while (!stopping_ && recovery_.generation() == round.generation && round_ == std::nullopt && absl::Now() < leases_out_) {
    changed_.WaitFor(&mutex_, leases_out_ - absl::Now());
  }
  if (stopping_ || recovery_.generation() != round.generation) return;
  if (replies.ok()) {
    const int64_t before = updates_.rolled_back();
    for (size_t i = 0; i < round.servers.size(); ++i) {
      if (!round.servers[i].keep) updates_.Restored(round.servers[i].index, (*replies)[i].updates());
    }
    NoteRolledBack(before);
    configured_ = round.generation;
    for (const RestoreRound::Server& server : round.servers) {
      Act(recovery_.RestoreDone(server.index, round.generation));
    }
    return;
  }
  // Whatever it ended with: a server was lost meanwhile, and another round begins when its place is taken.
  if (!recovery_.restoring(round.generation)) return;
  const absl::Status& status = replies.status();
  const auto detail = DetailOf(status);
  const uint32_t server = detail && detail->role() == pb::ROLE_PSSERVER ? detail->index() : 0;
  if (detail && detail->epoch() > options_.epoch.value()) {
    newer_epoch_ = std::max(newer_epoch_, detail->epoch());
    changed_.SignalAll();
    return;
  }
  const bool bad = IsBadCheckpoint(status);
  const bool again = KindOf(status) == pb::ERROR_MACHINE || KindOf(status) == pb::ERROR_STALE;
  if (!bad && !again) return FailLocked(status);
  round_error_ = status;
  if (bad) {
    MU_LOG(ERROR, "the servers cannot be restored from checkpoint {}: {}; trying an older one", round.checkpoint.value(),
           status);
  } else {
    MU_LOG(WARN, "recovery of the servers did not succeed and is tried again: {}", status);
    retry_at_ = absl::Now() + kRetry;
  }
  Act(recovery_.RestoreFailed(server, round.generation,
                              bad ? Recovery::Failure::kBadCheckpoint : Recovery::Failure::kTryAgain));
}

void Runtime::SaveForLeave() {
  std::function<absl::StatusOr<CheckpointNumber>()> take;
  {
    MutexLock lock(&mutex_);
    take = hooks_.save;
  }
  const absl::StatusOr<CheckpointNumber> taken = take();
  MutexLock lock(&mutex_);
  if (stopping_ || !fatal_.ok()) return;
  if (!taken.ok()) MU_LOG(ERROR, "no checkpoint before a server leaves: {}", taken.status());
  const size_t failures = stats_.failures.size();
  const Recovery::Actions actions =
      recovery_.LeaveCheckpoint(taken.ok() ? std::optional<CheckpointNumber>(*taken) : std::nullopt);
  first_failure_ = failures;  // that of the first to leave
  Act(actions);
}

void Runtime::LeavingServer(const std::shared_ptr<ServerCall>& call, const pb::LeaveRequest& request) {
  MutexLock lock(&mutex_);
  const auto member = membership_.Find(pb::ROLE_PSSERVER, request.index());
  const bool known = member.has_value() && member->incarnation == Incarnation(request.incarnation());
  if (!known || stopping_ || !recovery_enabled_ || !recovery_.started()) {
    if (known) {
      membership_.Remove(member->role, member->index, member->incarnation);
      MemberLost(*member, "left", request.reason());
    }
    return call->Finish(absl::OkStatus(), Buffer(pb::LeaveReply().SerializeAsString()));
  }
  MU_LOG(INFO, "server {} wants to leave ({}): a checkpoint is taken first", member->index, request.reason());
  leaving_[request.index()].push_back(call);
  if (recovery_.serving()) first_failure_ = stats_.failures.size();
  Act(recovery_.ServerLeaving(request.index()));
}

void Runtime::Superseded(uint64_t epoch) {
  MutexLock lock(&mutex_);
  newer_epoch_ = std::max(newer_epoch_, epoch);
  Act(commit_.Superseded());
  if (hooks_.interrupt != nullptr) hooks_.interrupt();
  FailLocked(MachineError(absl::AbortedError(
      absl::StrCat("a newer coordinator (epoch ", newer_epoch_, ") has taken over this job; this one, of epoch ",
                   options_.epoch.value(), ", ends without saving anything"))));
}

bool Runtime::superseded() const {
  MutexLock lock(&mutex_);
  return newer_epoch_ > options_.epoch.value();
}

}  // namespace mu
