// The servers' state: recovery and leaves. Tasks are in core_tasks.cc, checkpoints in
// core_checkpoints.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cannot_read.h"
#include "common/base/error_kind.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

void Core::On(event::EnableRecovery& e) {
  if (queue_.rounds().on() && e.mode == RecoveryMode::kShard) {
    Note(Level::kError,
         "synchronous rounds need recovery of all servers, which is enabled instead");
    e.mode = RecoveryMode::kAll;
  }
  if (recovery_enabled_) {
    if (e.mode == recovery_.mode()) return;
    const bool all = recovery_.mode() == RecoveryMode::kAll;
    return Note(Level::kWarning, "recovery of ", all ? "all servers" : "single servers",
                " is already enabled; it stays, and recovery of ",
                all ? "single servers" : "all servers", " is not begun");
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
  // While the cluster gathers, nobody has given or asked the servers anything: another process may
  // take the place as this one did.
  const bool gathering = !configured_.has_value() && work_.kind == Work::Kind::kNone &&
                         tasks_.empty() && !queue_.scheduled();
  const bool was_loading = VoidWork();
  Act(commit_.ServerLost(member.index));
  if (!recovery_enabled_ && !gathering) {
    return End(WithKind(absl::UnavailableError(absl::StrCat("parameter ", Describe(member),
                                                            " is lost (", kind, "): ", message)),
                        pb::ERROR_MACHINE, pb::ROLE_PSSERVER, member.index));
  }
  Do(action::InterruptServers{});
  Act(recovery_.ServerLost(member.index));
  if (was_loading) StateBroken();
  Act(update_pause_.ServerGone(member.index));
  AnswerLeaving(member.index);
}

void Core::Act(const Recovery::Actions& actions) {
  using Kind = RecoveryAction::Kind;
  for (const RecoveryAction& recovery : actions) {
    switch (recovery.kind) {
      case Kind::kPause:
        round_error_ = absl::OkStatus();
        VoidWork();
        views_.ServersChanged();
        Do(action::Paused{});
        StopRuns();
        break;
      case Kind::kRollBack: {
        const FunctionQueue::RolledBack back = queue_.RollBack(recovery.checkpoint);
        failures_.RolledBack(back);
        Note(Level::kWarning, back.steps, " steps of ", back.functions, " functions since ",
             recovery.checkpoint == kInitialValues
                 ? "the beginning"
                 : absl::StrCat("checkpoint ", recovery.checkpoint.value()),
             " will run again");
        break;
      }
      case Kind::kRestore:
        round_ = {recovery.generation, recovery.checkpoint, recovery.keep};
        round_parameters_ = parameters_;
        Do(round_);
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
        between_rounds_.Reset();
        work_failures_ = 0;  // of servers that are gone, perhaps
        work_again_at_ = absl::InfinitePast();
        parameters_configured_ = round_parameters_;
        views_.ServersChanged();
        Do(action::UseRouting{});
        Do(action::Serving{recovery.generation, failures_.ServersBack(Seconds())});
        dispatch_ = true;
        break;
      case Kind::kGiveUp:
        End(WithKind(
            absl::DataLossError(absl::StrCat(
                "the servers' state is lost: there is no checkpoint that could be "
                "restored and whose functions could be repeated",
                round_error_.ok() ? "" : "; the last that was tried: ", round_error_.message())),
            pb::ERROR_MACHINE));
        break;
    }
  }
}

void Core::LetGo(uint32_t server) {
  if (const auto member = membership_.Find(pb::ROLE_PSSERVER, server)) {
    membership_.Expel(*member,
                      WithKind(absl::FailedPreconditionError("this daemon has taken its leave"),
                               pb::ERROR_USER, pb::ROLE_COORDINATOR));
    failures_.ServerLost({{}, member->role, member->index, "left", Seconds(), "SIGTERM"},
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
  membership_.Expel(*member,
                    WithKind(absl::FailedPreconditionError(absl::StrCat(
                                 "this process must end and another one take its place: ", why)),
                             pb::ERROR_STALE, member->role));
  // The process ends when it hears of this; it may not hear.
  old_leases_.Add(member->pid, member->last_heartbeat + options_.timeout);
  Lose(*member, kind, why);
}

void Core::Act(UpdatePause::Change change) {
  if (change == UpdatePause::Change::kNone) return;
  if (change == UpdatePause::Change::kPaused) {
    return Note(Level::kWarning,
                "no new function that changes parameters is started: ", update_pause_.Describe(),
                ". It is freed when two checkpoints have succeeded; the log says why "
                "they fail. A program without a Checkpointer has to call Checkpoint");
  }
  Note(Level::kInfo,
       "functions that change parameters are started again: ", update_pause_.Describe());
  dispatch_ = true;
}

void Core::On(event::MostKept& e) {
  most_kept_ = e.bytes;
  NoteKept();
}

void Core::On(event::Restored& e) {
  NoteEpoch(e.error.epoch);
  e.error = AfterRename(std::move(e.error), e.renamed);
  // Whatever an earlier round ended with, and however late: a server was lost meanwhile, and
  // another round began when its place was taken, or will.
  if (closed_ || !ended_.ok() || !recovery_.restoring(e.generation)) return;
  if (IsCannotRead(e.error.status) && !std::exchange(e.looked, true))
    return LookFirst({e.generation, TaskId(), round_.checkpoint}, std::move(e));
  if (e.error.ok()) {
    restored_ = std::move(e);
    return FinishRestore();
  }
  const RestoreFault fault = FaultOf(e.error);
  if (fault == RestoreFault::kFatal) return End(e.error.status);
  round_error_ = e.error.status;
  if (fault == RestoreFault::kCheckpoint) {
    Do(action::CheckpointBad{TaskId(), round_.checkpoint});
    Note(Level::kError, "the servers cannot be restored: ", StatusText(e.error.status),
         "; trying an older checkpoint");
  } else if (fault == RestoreFault::kTryAgain) {
    Note(Level::kWarning, "recovery of the servers did not succeed and is tried again: ",
         StatusText(e.error.status));
    retry_at_ = now_ + between_rounds_.Next();
  }
  Act(recovery_.RestoreFailed(e.generation, fault, e.error.index));
}

// A server that was cut off may serve until its lease runs out: what replaces it waits for that.
void Core::FinishRestore() {
  if (closed_ || now_ < old_leases_.last()) return;
  old_leases_.Forget(now_);
  const auto done = std::exchange(restored_, std::nullopt);
  if (!done.has_value() || !recovery_.restoring(done->generation)) return;
  for (uint32_t s = 0; s < options_.servers; ++s) {
    if (!round_.keep[s]) failures_.ServerRestored(s, done->updates[s], done->from);
  }
  configured_ = done->generation;
  Act(recovery_.RestoreDone(done->generation));
}

}  // namespace mu
