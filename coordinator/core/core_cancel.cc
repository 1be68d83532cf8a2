// How an error, or the user, ends everything: on the workers first, then the servers refuse what is
// still on its way, then users are told.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/protections.h"

namespace mu {

Permission Core::TrainingIsOver() const {
  absl::Status refused = ended();
  if (queue_.IsAwaited()) {
    refused.Update(absl::FailedPreconditionError("functions are queued or running; Join first"));
  }
  if (!refused.ok()) return {.refusal = std::move(refused)};
  return {.wait = !quiet()};
}

void Core::BeginCancel(absl::Status error) {
  for (const FunctionId id : queue_.CancelAll())
    Finish(id, absl::CancelledError("cancelled: another function failed"));
  contributions_.clear();
  cancelled_ = true;  // until training is scheduled again
  for (auto it = tasks_.begin(); it != tasks_.end();) {
    const auto& [id, task] = *it++;  // it may go
    // One that is under way ends by itself.
    if (task.what.background && id != work_.task) Answer(id, LacksWhatWasCancelled());
  }
  if (MU_BROKEN(groups_lost)) EndAllGroups(absl::CancelledError("cancelled"));
  if (cancellation_.under_way()) return cancellation_.Also(std::move(error));
  // Of the generation in which it ran. Should servers be restored before they are fenced, functions
  // below the mark run again in the next one.
  const FunctionId below = MU_BROKEN(cancel_below_mark) ? low_water() : queue_.next_id();
  cancellation_.Begin(below, generation_, std::move(error));
  if (work_.kind == Work::Kind::kRepeatAssignment) VoidWork();
  if (!MU_BROKEN(commit_after_fence)) Act(commit_.FunctionsCancelled());
  action::CancelOnWorkers cancel = {.below = below, .generation = generation_};
  for (const auto& [id, worker] : workers_) {
    cancellation_.WaitFor(id, worker.member.incarnation, now_);
    cancel.workers.push_back(id);
  }
  if (!cancel.workers.empty()) Do(std::move(cancel));
  FenceWhenWorkersAreQuiet();
}

void Core::On(event::WorkerCancelled& e) {
  if (closed_) return;
  NoteEpoch(e.error.epoch);
  if (!e.error.ok() && cancellation_.AskedBefore(awake_since_, e.worker, e.incarnation)) {
    cancellation_.WaitFor(e.worker, e.incarnation, now_);
    return Do(action::CancelOnWorkers{.below = cancellation_.below(),
                                      .generation = cancellation_.generation(),
                                      .workers = {e.worker}});
  }
  if (!e.error.ok()) {
    // It does not answer: its functions are over here, and the fence keeps its updates out there.
    if (Worker* const worker = Find(e.worker, e.incarnation)) {
      Note(Level::kWarning, "worker ", e.worker.value(),
           " does not confirm that its functions have ended: ", StatusText(e.error.status));
      const Member member = worker->member;
      Remove(member, "unreachable", std::string(e.error.status.message()));
    }
    return;  // who is lost is waited for no longer
  }
  if (cancellation_.Quiet(e.worker, e.incarnation)) FenceWhenWorkersAreQuiet();
}

void Core::FenceWhenWorkersAreQuiet() {
  // A round that some servers have applied is applied by all, and what of it is cancelled has
  // finished.
  if (round_decided() && !MU_BROKEN(fence_in_a_round)) return;
  if (cancellation_.under_way() && !cancellation_.fencing() && cancellation_.workers_are_quiet())
    Fence();
}

void Core::Fence() {
  action::FenceServers fence = {.below = cancellation_.below(),
                                .generation = cancellation_.generation()};
  std::map<uint32_t, Incarnation> asked;
  for (const Member& member : membership_.Servers()) {
    // What has taken a lost server's place has no state yet, and gets it in a newer generation.
    if (recovery_.lost().contains(member.index)) continue;
    asked[member.index] = member.incarnation;
    fence.servers.push_back(member.index);
  }
  fence.attempt = cancellation_.NextAttempt(now_, std::move(asked));
  Do(std::move(fence));
}

// Servers that have not confirmed do so without a fence: all go back to a checkpoint, or are in a
// newer generation.
bool Core::RefusesWhatWasCancelled() const {
  if (!recovery_enabled_ || !recovery_.started()) return false;
  if (recovery_.may_roll_back()) return true;
  const bool left = leave_wanted_ || (work_.kind == Work::Kind::kSave && work_.task == TaskId()) ||
                    (recovery_.mode() == RecoveryMode::kAll && !recovery_.lost().empty());
  return recovery_.generation() > cancellation_.generation() && (recovery_.serving() || left);
}

void Core::On(event::Fenced& e) {
  if (closed_ || !cancellation_.Waits(e.attempt)) return;
  // Nothing of what was cancelled may be applied once users are told. A server that stalls is asked
  // again; one that is lost does not serve, and what takes its place has a newer generation.
  bool stalls = false;
  for (const auto& [server, error] : e.failed) {
    NoteEpoch(error.epoch);
    const auto member = membership_.Find(pb::ROLE_PSSERVER, server);
    if (error.kind != pb::ERROR_MACHINE || !member.has_value() ||
        !cancellation_.Asked(server, member->incarnation) || recovery_.lost().contains(server) ||
        RefusesWhatWasCancelled())
      continue;
    Note(Level::kWarning, "fence: ", StatusText(error.status));
    // One whose heartbeats arrive and that answers nothing else does not serve either.
    const absl::Time since = cancellation_.fencing_since();
    if (now_ - since >= kMostSilences * options_.timeout) {
      Expel(server, error.status, "hangs");
    } else {
      stalls = true;
    }
  }
  if (stalls && ended_.ok()) return cancellation_.AskAgainAt(now_ + options_.heartbeat);
  cancellation_.End();
  Do(action::Cancelled{cancellation_.error()});
  // Functions that were being repeated are part of what users were told is done: they are repeated
  // from the beginning, in a generation in which nothing of before is refused or applied.
  if (recovery_enabled_ && queue_.repeats_cancelled()) Act(recovery_.StateLost());
  dispatch_ = true;
}

}  // namespace mu
