// How an error, or the user, ends everything: on the workers first, then the servers refuse what is
// still on its way, then users are told.
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/core/core.h"
#include "coordinator/core/protections.h"

namespace mu {
namespace {

// A server that has not answered a fence for so many heartbeat timeouts is replaced.
constexpr int kMostSilences = 3;

}  // namespace

void Core::BeginCancel(absl::Status error) {
  for (const FunctionId id : queue_.CancelAll())
    Finish(id, absl::CancelledError("cancelled: another function failed"));
  if (cancellation_.under_way()) return cancellation_.Also(std::move(error));
  // Of the generation in which it ran. Should servers be restored before they are fenced, functions
  // below the mark run again in the next one.
  const FunctionId below = MU_BROKEN(cancel_below_mark) ? low_water() : queue_.next_id();
  cancellation_.Begin(below, generation_, std::move(error));
  if (work_.kind == Work::Kind::kRepeatAssignment) VoidWork();
  if (!MU_BROKEN(commit_after_fence)) Act(commit_.FunctionsCancelled());
  action::CancelOnWorkers cancel = {.below = below, .generation = generation_};
  for (const auto& [id, worker] : workers_) {
    cancellation_.WaitFor(id, worker.member.incarnation);
    cancel.workers.push_back(id);
  }
  if (!cancel.workers.empty()) Do(std::move(cancel));
  FenceWhenWorkersAreQuiet();
}

void Core::On(event::WorkerCancelled& e) {
  if (closed_) return;
  NoteEpoch(e.error.epoch);
  if (!e.error.ok()) {
    // It does not answer: its functions are over here, and the fence keeps its updates out there.
    if (Worker* const worker = Find(e.worker, e.incarnation)) {
      Note(action::Note::Level::kWarning,
           absl::StrCat(
               "worker ", e.worker.value(),
               " does not confirm that its functions have ended: ", e.error.status.ToString()));
      const Member member = worker->member;
      Remove(member, "unreachable", std::string(e.error.status.message()));
    }
    return;  // who is lost is waited for no longer
  }
  if (cancellation_.Quiet(e.worker, e.incarnation)) FenceWhenWorkersAreQuiet();
}

void Core::FenceWhenWorkersAreQuiet() {
  if (cancellation_.under_way() && !cancellation_.fencing() && cancellation_.workers_are_quiet())
    Fence();
}

void Core::Fence() {
  Do(action::FenceServers{cancellation_.NextAttempt(now_), cancellation_.below(),
                          cancellation_.generation()});
}

void Core::On(event::Fenced& e) {
  NoteEpoch(e.error.epoch);
  if (closed_ || !cancellation_.Waits(e.attempt)) return;
  if (!e.error.ok())
    Note(action::Note::Level::kWarning, absl::StrCat("fence: ", e.error.status.ToString()));
  // Nothing of what was cancelled may be applied once users are told. A server that stalls is asked
  // again, unless it is going to lose what it applies, or is in a newer generation, which refuses
  // all of it.
  // One whose heartbeats arrive and that answers nothing else does not serve.
  if (e.error.kind == pb::ERROR_MACHINE && e.error.role == pb::ROLE_PSSERVER &&
      now_ - cancellation_.fencing_since() >= kMostSilences * options_.timeout) {
    Expel(e.error.index, e.error.status, "hangs");
  }
  const bool recovers = recovery_enabled_ && recovery_.started();
  const bool left = leave_wanted_ || (work_.kind == Work::Kind::kSave && work_.task == TaskId()) ||
                    (recovery_.mode() == RecoveryMode::kAll && !recovery_.lost().empty());
  const bool newer = recovers && recovery_.generation() > cancellation_.generation() &&
                     (recovery_.serving() || left);
  // All servers go back to a checkpoint, or the job ends.
  const bool given_up = recovers ? recovery_.may_roll_back() : !AllServersAreThere();
  if (e.error.kind == pb::ERROR_MACHINE && ended_.ok() && !newer && !given_up)
    return cancellation_.AskAgainAt(now_ + options_.heartbeat);
  cancellation_.End();
  Do(action::Cancelled{cancellation_.error()});
  // Functions that were being repeated are part of what users were told is done: they are repeated
  // from the beginning, in a generation in which nothing of before is refused or applied.
  if (recovery_enabled_ && queue_.repeats_cancelled()) Act(recovery_.StateLost());
  dispatch_ = true;
}

}  // namespace mu
