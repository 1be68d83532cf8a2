// Groups of functions beside training, and the views that they read.
#include <algorithm>
#include <utility>

#include "common/obs/log.h"
#include "coordinator/cluster/runtime.h"

namespace mu {
namespace {

bool IsSame(const ViewFiles& one, const ViewFiles& other) {
  const auto& files = one.manifest.files();
  const auto& others = other.manifest.files();
  const auto same = [](const pb::CheckpointFileProto& a, const pb::CheckpointFileProto& b) {
    return a.name() == b.name() && a.bytes() == b.bytes() && a.crc32c() == b.crc32c();
  };
  return one.held->folder() == other.held->folder() &&
         std::equal(files.begin(), files.end(), others.begin(), others.end(), same);
}

}  // namespace

Loop::Turn Runtime::TurnOf(GroupId group, Turn turn) {
  if (group == GroupId()) return turn;
  return kGroups + static_cast<Loop::Turn>(2 * group.value()) + turn;
}

GroupId Runtime::MakeGroup(std::shared_ptr<const ViewFiles> files) {
  return loop_.Ask([&] {
    loop_.AssertHeld();
    const GroupId group = last_group_ = last_group_.Next();
    errors_.GroupMade(group);
    event::GroupMade made = {.group = group};
    if (files != nullptr) {
      for (const auto& [view, there] : views_) {
        if (IsSame(*there, *files)) made.same.push_back(view);
      }
      // Servers may still have views of the job's older coordinators.
      made.view = ViewId((options_.epoch.value() << 32) + group.value());
      views_[made.view] = std::move(files);
    }
    Step(std::move(made));
    return group;
  });
}

void Runtime::DropGroup(GroupId group) {
  loop_.Post([this, group] {
    loop_.AssertHeld();
    errors_.GroupDropped(group);
    Step(event::GroupDropped{group});
  });
}

absl::Status Runtime::Join(GroupId group) {
  if (group == GroupId()) return Join();
  absl::Status result;
  loop_.AwaitTurn(TurnOf(group, kJoin), [&] {
    loop_.AssertHeld();
    return TryJoin(group, &result);
  });
  return result;
}

void Runtime::Cancel(GroupId group) {
  if (group == GroupId()) return CancelEverything();
  loop_.Ask([&] {
    loop_.AssertHeld();
    Step(event::CancelGroup{group});
  });
}

void Runtime::Do(action::GroupFailed& a) { errors_.Failed(a.group, std::move(a.error)); }

void Runtime::Do(action::LoadView& a) {
  work_on_views_.Add([this, call = NewCall(a.generation), a, files = views_.at(a.view)] {
    const std::string folder = files->held->folder();
    ScopedSpan span(options_.telemetry, "load_view", folder);
    const auto& saved = files->manifest.files();
    absl::Status status = options_.server_api->LoadView(
        call, a.view, {folder, {saved.begin(), saved.end()}, nullptr});
    // What servers have found there, if anything, was another checkpoint.
    if (!status.ok() && files->held->IsNotCalled(folder))
      status = absl::CancelledError("the checkpoint's folder has been renamed");
    EndCall(call, event::ViewAnswered{a.attempt, CallError::Of(status)});
  });
}

void Runtime::Do(action::DropView& a) {
  work_on_views_.Add([this, call = NewCall(a.generation), a] {
    const absl::Status status = options_.server_api->DropView(call, a.view);
    EndCall(call, event::ViewAnswered{a.attempt, CallError::Of(status)});
  });
}

void Runtime::Do(action::ViewUnused& a) { views_.erase(a.view); }

}  // namespace mu
