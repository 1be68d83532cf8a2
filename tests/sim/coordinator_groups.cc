// The simulated user's evaluations beside training: groups of functions that read the current
// values or those of a checkpoint. What is promised of them is checked here.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/error_kind.h"
#include "tests/sim/cluster.h"
#include "tests/sim/coordinator.h"

namespace mu::sim {
namespace {

constexpr uint32_t kMostFunctions = 5;  // of an evaluation
constexpr uint64_t kOtherGroups = 1000;

}  // namespace

bool Coordinator::EvaluationsDone() const {
  return evaluation_ == GroupId() && evaluations_ >= cluster_->scenario().evaluations &&
         core_.views().empty();
}

void Coordinator::Evaluate() {
  if (cluster_->scenario().evaluations == 0) return;
  After(cluster_->Between(kMillisecond, 40 * kMillisecond), "evaluates", [this] { Evaluate(); });
  if (beginning_ || ended() || evaluation_ != GroupId() || core_.loading() ||
      evaluations_ >= cluster_->scenario().evaluations)
    return;
  ++evaluations_;
  const GroupId group = evaluation_ = GroupId(evaluations_);
  Evaluation& made = groups_[group] = {};
  const auto& checkpoints = cluster_->disk().checkpoints;
  const auto newest = std::find_if(checkpoints.rbegin(), checkpoints.rend(),
                                   [](const auto& c) { return c.second.committed; });
  if (newest != checkpoints.rend() && cluster_->Between(0, 2) > 0) {
    made.folder = newest->first;
    made.expected = ValueOf(newest->second);
  }
  MakeGroup(group, made.folder);
  if (cluster_->PerMille(300)) {
    // Another one, whose functions are still to come, reads the same.
    const GroupId other(kOtherGroups + evaluations_);
    MakeGroup(other, made.folder);
    After(cluster_->Between(0, 30 * kMillisecond), "drops a group", [this, other] {
      errors_.GroupDropped(other);
      if (!ended()) Step(event::GroupDropped{other});
    });
  }
  made.functions = static_cast<uint32_t>(cluster_->Between(1, kMostFunctions));
  if (cluster_->PerMille(150)) {
    made.bad = true;  // the first call of its last function fails
  } else if (cluster_->PerMille(150)) {
    After(cluster_->Between(0, 30 * kMillisecond), "cancels an evaluation",
          [this, group] { CancelGroup(group); });
  }
  for (uint32_t i = 0; i < made.functions; ++i) {
    FunctionWork work;
    work.group = group;
    work.steps = static_cast<uint32_t>(cluster_->Between(1, 4));
    const auto unseen = errors_.Unseen(group);
    const Permission may =
        core_.MaySchedule(work, unseen == nullptr ? absl::OkStatus() : unseen->status);
    if (may.wait) made.functions = i;  // there is no room for more
    // It has failed, or its view cannot be loaded.
    if (!may.wait && !may.granted()) NoteGroupError(group, may.refusal);
    if (!may.granted()) break;
    Step(event::Schedule{std::move(work)});
    if (ended() || evaluation_ != group) return;  // it may have been joined
  }
}

// As Runtime::MakeGroup.
void Coordinator::MakeGroup(GroupId group, uint64_t folder) {
  errors_.GroupMade(group);
  event::GroupMade made = {.group = group};
  if (folder != 0) {
    for (const auto& [view, other] : views_) {
      if (other == folder) made.same.push_back(view);
    }
    made.view = ViewId((uint64_t{epoch_} << 32) + group.value());
    views_[made.view] = folder;
  }
  Step(std::move(made));
}

void Coordinator::NoteGroupError(GroupId group, const absl::Status& error) {
  absl::Status& first = groups_.at(group).error;
  if (first.ok()) first = error;
  errors_.Failed(group, error);
}

void Coordinator::CancelGroup(GroupId group) {
  if (ended() || !groups_.contains(group)) return;
  groups_.at(group).may_end = true;
  Step(event::CancelGroup{group});
}

// What all its updates add up to.
uint64_t Coordinator::ValueOf(const Checkpoint& checkpoint) const {
  uint64_t value = 0;
  for (uint8_t f = 0; f < checkpoint.servers; ++f) {
    if (checkpoint.files[f] == nullptr) return kNoValue;
    for (const Partition& partition : checkpoint.files[f]->partitions)
      value += partition.held ? partition.counter : 0;
  }
  return value;
}

void Coordinator::StartInGroup(const StartRun& start, Message* run) {
  const FunctionQueue::Function& function = *core_.queue().Find(start.function);
  Evaluation& group = groups_.at(function.work.group);
  run->view = function.work.view.value();
  run->only_reads = true;
  run->fails = std::exchange(group.bad, false);
  run->fails_at = run->first_step;
  const auto view = views_.find(function.work.view);
  if ((view == views_.end() ? 0 : view->second) != group.folder)
    cluster_->truth().Fail("a function reads another view");
  const FunctionQueue& queue = core_.queue();
  const bool trains = was_awaited_ || queue.IsTrainingAwaited();
  if (function.work.view == ViewId() &&
      (queue.repeats_cancelled() || queue.IsRepeating(trains ? turn_ : queue.next_id())))
    cluster_->truth().Fail("a group reads values that functions are still to make again");
  // Servers that a newer coordinator has taken have none of the views of before.
  if (function.work.view == ViewId() || cluster_->disk().epoch != epoch_) return;
  for (uint32_t s = 0; s < expected_servers_; ++s) {
    const Place place = PlaceOf(pb::ROLE_PSSERVER, s);
    if (cluster_->HasView(place.slot, place.incarnation, run->view)) continue;
    cluster_->truth().Fail(absl::StrCat("a function that reads view ", run->view,
                                        " starts, and server ", s, " has not loaded it"));
  }
}

void Coordinator::DeliverInGroup(FunctionId function) {
  const FunctionQueue::Function* const found = core_.queue().Find(function);
  if (found == nullptr) return cluster_->truth().Fail("a result of no function is delivered");
  Evaluation& group = groups_.at(found->work.group);
  uint32_t& next = group.delivered[function];
  if (handling_->step != next++)
    cluster_->truth().Fail("the results of an evaluation's function come in another order");
  if (group.folder != 0 && group.expected != kNoValue && handling_->updates != group.expected) {
    cluster_->truth().Fail(absl::StrCat("an evaluation reads ", handling_->updates,
                                        " of a checkpoint that holds ", group.expected));
  }
}

void Coordinator::FinishInGroup(const action::Finish& a) {
  records_.erase(a.function);
  for (auto& [id, group] : groups_) {
    if (group.finished.contains(a.function)) cluster_->truth().Fail("a function finishes twice");
  }
  Evaluation& group = groups_.at(evaluation_);
  group.finished[a.function] = a.status.ok();
}

void Coordinator::Do(action::GroupFailed& a) {
  Saw("group failed");
  const auto group = groups_.find(a.group);
  if (group == groups_.end()) {
    errors_.Failed(a.group, a.error);
    return;
  }
  group->second.may_end = true;
  NoteGroupError(a.group, a.error);
  // A new one may have been asked for meanwhile: it is refused.
}

// An event that is about a group, and has been handled, has ended nothing else.
void Coordinator::CheckGroups(bool about_group, bool was_cancelling) {
  if (about_group && !was_cancelling && core_.cancelling())
    cluster_->truth().Fail("an error of a group cancels training");
  for (const auto& [id, group] : groups_) {
    const bool all = std::all_of(group.finished.begin(), group.finished.end(),
                                 [](const auto& f) { return f.second; });
    if (!all && !group.may_end && !ended())
      cluster_->truth().Fail("a function of a group ends, and its group has not failed");
  }
  if (evaluation_ == GroupId() || !core_.done(evaluation_) || ended()) return;
  Evaluation& group = groups_.at(evaluation_);
  if (group.functions == 0 || (group.finished.size() < group.functions && !group.may_end)) return;
  // It is joined.
  for (const auto& [function, ok] : group.finished) {
    if (ok && group.delivered[function] == 0)
      cluster_->truth().Fail("a function of a group has finished without results");
  }
  if (!group.may_end) Saw("group joined");
  if (const absl::Status told = errors_.Tell(evaluation_, core_.closed(), core_.ended());
      told != group.error) {
    cluster_->truth().Fail(absl::StrCat("who joins an evaluation is told '", told.message(),
                                        "', and its first error is '", group.error.message(), "'"));
  }
  errors_.GroupDropped(evaluation_);
  groups_.erase(evaluation_);
  events_.push_back(event::GroupDropped{std::exchange(evaluation_, GroupId())});
}

void Coordinator::Do(action::LoadView& a) {
  const uint64_t folder = views_.at(a.view);
  cluster_->Trace(slot_, "loads view ", a.view.value(), " of checkpoint ", folder);
  CallAll(ToServers({.kind = Kind::kLoadView,
                     .generation = OnWire(a.generation),
                     .checkpoint = static_cast<uint32_t>(folder),
                     .view = a.view.value()}),
          kTries, [this, attempt = a.attempt](const absl::Status& status, const Messages&) {
            Step(event::ViewAnswered{attempt, CallError::Of(status)});
          });
}

void Coordinator::Do(action::DropView& a) {
  CallAll(
      ToServers(
          {.kind = Kind::kDropView, .generation = OnWire(a.generation), .view = a.view.value()}),
      kTries, [this, attempt = a.attempt](const absl::Status& status, const Messages&) {
        Step(event::ViewAnswered{attempt, CallError::Of(status)});
      });
}

bool Coordinator::Holds(uint64_t folder) const {
  if (restore_task_ != TaskId() && restore_from_ == folder) return true;
  return std::any_of(views_.begin(), views_.end(),
                     [&](const auto& view) { return view.second == folder; });
}

}  // namespace mu::sim
