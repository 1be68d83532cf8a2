// Groups of functions beside training, and the views of checkpoints that they read.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_text.h"
#include "coordinator/core/core.h"
#include "coordinator/core/deadlines.h"
#include "coordinator/core/protections.h"
#include "coordinator/core/restore_fault.h"

namespace mu {

absl::Status Core::GroupRefuses(const FunctionWork& work) const {
  if (work.group == GroupId()) return absl::OkStatus();
  const auto group = groups_.find(work.group);
  if (group == groups_.end()) return absl::InvalidArgumentError("the group of functions is over");
  if (work.trains) {
    return absl::InvalidArgumentError(
        absl::StrCat("function '", work.name,
                     "' changes variables or tables, and functions of a group run beside training "
                     "and must only read; schedule it without a group"));
  }
  return group->second.unusable;
}

void Core::On(event::GroupMade& e) {
  ViewId& view = groups_[e.group].view = e.view;
  for (const ViewId other : e.same) {
    // One that is being dropped, or could not be loaded, stays dropped on the servers.
    if (views_.wanted(other)) view = other;
  }
  if (view == ViewId()) return;
  if (view != e.view) Do(action::ViewUnused{e.view});
  views_.Want(view);
}

void Core::On(event::GroupDropped& e) {
  const auto group = groups_.extract(e.group);
  if (group.empty()) return;
  EndFunctionsOf(e.group, absl::CancelledError("cancelled: nobody has the group any more"));
  const ViewId view = group.mapped().view;
  if (view == ViewId()) return;
  // Another group's, too?
  for (const auto& [id, other] : groups_) {
    if (other.view == view) return;
  }
  if (views_.Drop(view)) Do(action::ViewUnused{view});
}

void Core::On(event::CancelGroup& e) { EndFunctionsOf(e.group, absl::CancelledError("cancelled")); }

void Core::EndFunctionsOf(GroupId group, const absl::Status& why) {
  for (const FunctionQueue::Cancelled& cancelled : queue_.CancelGroup(group)) {
    Finish(cancelled.function, why);
    // One that is about to be started is in the queue only.
    const auto worker = workers_.find(cancelled.worker);
    if (worker != workers_.end() && worker->second.runs.contains(cancelled.run))
      Do(action::StopRun{cancelled.worker, cancelled.run});
  }
  dispatch_ = true;
}

void Core::EndAllGroups(const absl::Status& why) {
  for (const auto& [id, group] : groups_) EndFunctionsOf(id, why);
}

void Core::FailGroup(GroupId group, absl::Status error) {
  if (MU_BROKEN(groups_fail_together)) return BeginCancel(std::move(error));
  EndFunctionsOf(group, absl::CancelledError("cancelled: another function of its group failed"));
  if (groups_.contains(group)) Do(action::GroupFailed{group, std::move(error)});
}

void Core::FailGroupsOf(ViewId view, const absl::Status& error) {
  for (auto& [id, group] : groups_) {
    if (group.view != view) continue;
    group.unusable = error;
    FailGroup(id, error);
  }
}

bool Core::MayStart(const FunctionWork& work) const {
  if (work.group == GroupId()) return !cancelling() && !(work.trains && SkipsRounds());
  return work.view == ViewId() || views_.IsLoaded(work.view) || MU_BROKEN(early_views);
}

// Beside whatever else the servers are asked: training does not wait for a view.
void Core::DriveViews() {
  if (closed_ || !ended_.ok() || !serving() || !AllServersAreThere() || !configured_.has_value() ||
      !parameters_configured_.has_value() || work_.kind == Work::Kind::kConfigure ||
      work_.kind == Work::Kind::kLoad)
    return;
  const auto next = views_.Next(now_);
  if (!next.has_value()) return;
  if (next->loads) {
    Do(action::LoadView{next->attempt, next->view, *configured_});
  } else {
    Do(action::DropView{next->attempt, next->view, *configured_});
  }
}

void Core::On(event::ViewAnswered& e) {
  NoteEpoch(e.error.epoch);
  const auto call = views_.Answered(e.attempt);
  if (!call.has_value() || closed_ || !ended_.ok()) return;
  const ViewId view = call->view;
  if (!e.error.ok()) {
    // What is damaged stays so.
    const bool passing =
        !IsBadCheckpoint(e.error.status) && deadlines::MayTryAgain(e.error, views_.tries(view));
    if (passing || absl::IsCancelled(e.error.status))
      return views_.TryAgainAt(view, now_ + delays_.After(*views_.tries(view)));
    if (call->loads) {
      // Servers have their state whatever a view's files are: it is the error of who reads it.
      Note(Level::kError, "a view of a checkpoint cannot be loaded: ", StatusText(e.error.status));
      views_.GiveUp(view);
      return FailGroupsOf(view, e.error.status);
    }
    Note(Level::kWarning, "a view of a checkpoint stays on a server: ", StatusText(e.error.status));
  }
  dispatch_ = true;
  if (call->loads) return views_.Loaded(view);
  views_.Dropped(view);
  Do(action::ViewUnused{view});
}

}  // namespace mu
