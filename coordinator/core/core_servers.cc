// The servers' state: recovery and leaves. Tasks are in core_tasks.cc, checkpoints in
// core_checkpoints.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"

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

}  // namespace

void Core::On(event::EnableRecovery& e) {
  if (recovery_enabled_) {
    if (e.mode == recovery_.mode()) return;
    const bool all = recovery_.mode() == RecoveryMode::kAll;
    return Note(action::Note::Level::kWarning,
                absl::StrCat("recovery of ", all ? "all servers" : "single servers",
                             " is already enabled; it stays, and recovery of ",
                             all ? "single servers" : "all servers", " is not begun"));
  }
  recovery_enabled_ = true;
  recovery_ = Recovery({.servers = options_.servers, .mode = e.mode});
  recovery_.GivenOut(given_);
  const bool nothing_kept = queue_.scheduled() && queue_.points().back() == kInitialValues;
  if (nothing_kept) queue_.ForgetPoints();
  // Servers that are going to be reset get a newer generation first.
  if (configured_.has_value() && parameters_configured_.has_value())
    Act(recovery_.Start(*configured_, queue_.points()));
}

bool Core::OpensRecovery() {
  return std::exchange(leave_opened_, false) || !recovery_.started() || recovery_.serving();
}

void Core::LoseServer(const Member& member, const std::string& kind, const std::string& message) {
  if (closed_ || !ended_.ok()) return;
  const bool was_loading = VoidWork();
  Act(commit_.ServerLost(member.index));
  if (!recovery_enabled_) {
    return End(MachineError(absl::UnavailableError(absl::StrCat(
                                "parameter server ", member.index, " (pid ", member.pid, ", ",
                                member.address, ") is lost (", kind, "): ", message)),
                            member.index));
  }
  Do(action::InterruptServers{});
  Act(recovery_.ServerLost(member.index));
  if (was_loading) StateBroken();
  Act(update_pause_.ServerGone(member.index));
  AnswerLeaving(member.index);
}

void Core::Act(const Recovery::Actions& actions) {
  using Kind = RecoveryAction::Kind;
  RestoreRound round;
  for (const RecoveryAction& recovery : actions) {
    switch (recovery.kind) {
      case Kind::kPause:
        round_error_ = absl::OkStatus();
        VoidWork();
        Do(action::Paused{});
        StopRuns();
        break;
      case Kind::kRollBack: {
        const FunctionQueue::RolledBack back = queue_.RollBack(recovery.checkpoint);
        failures_.RolledBack(back);
        Do(action::RolledBack{recovery.checkpoint, back});
        break;
      }
      case Kind::kRestore:
      case Kind::kKeep:
        round.generation = recovery.generation;
        if (recovery.kind == Kind::kRestore) round.checkpoint = recovery.checkpoint;
        round.servers.push_back({recovery.server, recovery.kind == Kind::kKeep});
        break;
      case Kind::kTakeCheckpoint:
        leave_wanted_ = true;
        break;
      case Kind::kLetGo:
        LetGo(recovery.server);
        break;
      case Kind::kReplace:
        Expel(recovery.server, round_error_);
        break;
      case Kind::kResume:
        leave_opened_ = false;
        parameters_configured_ = round_parameters_;
        Do(action::UseRouting{});
        Do(action::Serving{recovery.generation, failures_.ServersBack(Seconds())});
        dispatch_ = true;
        break;
      case Kind::kGiveUp:
        End(MachineError(absl::DataLossError(absl::StrCat(
            "the servers' state is lost: there is no checkpoint that could be restored and whose "
            "functions could be repeated",
            round_error_.ok() ? ""
                              : absl::StrCat("; the last that was tried: ",
                                             std::string(round_error_.message()))))));
        break;
    }
  }
  if (round.servers.empty()) return;
  round_parameters_ = parameters_;
  Do(action::Restore{std::move(round)});
}

void Core::LetGo(uint32_t server) {
  if (const auto member = membership_.Find(pb::ROLE_PSSERVER, server)) {
    membership_.Remove(member->role, member->index, member->incarnation);
    departed_.Insert(member->incarnation.value());
    failures_.ServerLost({member->role, member->index, "left", Seconds(), "SIGTERM"},
                         std::exchange(leave_opened_, false));
    Do(action::MemberLost{*member, "left", "SIGTERM"});
    Act(commit_.ServerLost(server));
    Act(update_pause_.ServerGone(server));
  }
  AnswerLeaving(server);
}

void Core::Expel(uint32_t server, const absl::Status& error, const std::string& kind) {
  const auto member = membership_.Find(pb::ROLE_PSSERVER, server);
  if (!member.has_value()) return;
  const std::string why(error.message());
  membership_.Expel(member->role, member->index, member->incarnation, why);
  // The process ends when it hears of this; it may not hear.
  old_leases_.Add(member->pid, member->last_heartbeat + options_.timeout);
  Lose(*member, kind, why);
}

void Core::Act(UpdatePause::Change change) {
  if (change == UpdatePause::Change::kNone) return;
  if (change == UpdatePause::Change::kPaused) {
    return Note(action::Note::Level::kWarning,
                absl::StrCat("no new function that changes parameters is started: ",
                             update_pause_.Describe(),
                             ". It is freed when two checkpoints have succeeded; the log says why "
                             "they fail. A program without a Checkpointer has to call Checkpoint"));
  }
  Note(action::Note::Level::kInfo,
       absl::StrCat("functions that change parameters are started again: ",
                    update_pause_.Describe()));
  dispatch_ = true;
}

void Core::On(event::MostKept& e) {
  most_kept_ = e.bytes;
  NoteKept();
}

// A server that was cut off may serve until its lease runs out: what replaces it waits for that.
void Core::On(event::RestoreDone& e) {
  restored_.push_back(std::move(e));
  FinishRestores();
}

void Core::FinishRestores() {
  if (closed_ || now_ < old_leases_.last()) return;
  old_leases_.Forget(now_);
  for (const event::RestoreDone& done : std::exchange(restored_, {})) {
    if (!recovery_.restoring(done.generation)) continue;
    if (!done.kept) failures_.ServerRestored(done.server, done.updates, done.from);
    configured_ = done.generation;
    Act(recovery_.RestoreDone(done.server, done.generation));
  }
}

void Core::On(event::RestoreFailed& e) {
  NoteEpoch(e.error.epoch);
  // Whatever it ended with: a server was lost meanwhile, and another round begins when its place is
  // taken.
  if (closed_ || !ended_.ok() || !recovery_.restoring(e.generation)) return;
  if (e.fault == RestoreFault::kFatal) return End(e.error.status);
  round_error_ = e.error.status;
  Recovery::Failure failure = Recovery::Failure::kTryAgain;
  switch (e.fault) {
    case RestoreFault::kCheckpoint:
      Note(action::Note::Level::kError,
           absl::StrCat("the servers cannot be restored: ", e.error.status.ToString(),
                        "; trying an older checkpoint"));
      failure = Recovery::Failure::kBadCheckpoint;
      break;
    case RestoreFault::kServer:
      failure = Recovery::Failure::kServerAtFault;
      break;
    default:
      Note(action::Note::Level::kWarning,
           absl::StrCat("recovery of the servers did not succeed and is tried again: ",
                        e.error.status.ToString()));
      retry_at_ = now_ + kRetry;
  }
  Act(recovery_.RestoreFailed(e.server, e.generation, failure));
}

}  // namespace mu
