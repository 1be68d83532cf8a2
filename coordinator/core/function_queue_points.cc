// The queue's restore points: what a checkpoint contains, what runs again after a restore, what may
// be forgotten.
#include <algorithm>
#include <iterator>

#include "common/base/check.h"
#include "coordinator/core/function_queue.h"

namespace mu {

std::optional<uint32_t> FunctionQueue::Point::FirstStep(FunctionId id) const {
  if (id >= next_id) return 0;
  const auto it = unfinished.find(id);
  if (it == unfinished.end()) return std::nullopt;
  return it->second;
}

FunctionQueue::Point FunctionQueue::PointOf(const Position& position) {
  Point point;
  point.next_id = position.next_id;
  point.round = position.round;
  for (const auto& [id, function] : position.unfinished) point.unfinished[id] = function.next_step;
  for (const FunctionId id : position.assigning) point.unfinished[id] = 0;
  return point;
}

FunctionQueue::Position FunctionQueue::CheckpointPosition() const {
  Position position;
  position.next_id = next_id_;
  position.assigning = assigning_;
  position.round = rules_.on() ? round_ : 0;
  for (const auto& [id, function] : functions_) {
    if (function.work.updates) position.unfinished[id] = function;
  }
  return position;
}

FunctionQueue::Position FunctionQueue::AfterCuts(const Position& begun) const {
  const Point point = PointOf(begun);
  Position position;
  position.next_id = next_id_;
  position.round = begun.round;  // none is committed meanwhile
  const auto add = [&](FunctionId id, const Function& function) {
    const std::optional<uint32_t> first = point.FirstStep(id);
    if (!first.has_value() || !function.work.updates) return;  // whole in every cut, or in none
    // Only the results that had arrived at the beginning are known to be in every cut.
    Function& copy = position.unfinished[id] = function;
    copy.next_step = *first;
  };
  for (const auto& [id, function] : functions_) add(id, function);
  for (const auto& [id, function] : kept_) add(id, function);
  return position;
}

void FunctionQueue::CheckpointCommitted(CheckpointNumber checkpoint, const Position& begun) {
  points_[checkpoint] = PointOf(begun);
  while (points_.size() > most_points_) points_.erase(points_.begin());
  ForgetCovered();
}

void FunctionQueue::StartFrom(CheckpointNumber point, FunctionId next) {
  next_id_ = std::max(next_id_, next);
  Position now;
  now.next_id = next_id_;
  now.assigning = assigning_;
  now.round = rules_.on() ? round_ : 0;
  points_ = {{point, PointOf(now)}};
  ForgetCovered();
}

void FunctionQueue::ForgetCovered() {
  for (auto it = kept_.begin(); it != kept_.end();) {
    const bool needed = std::any_of(points_.begin(), points_.end(), [&](const auto& p) {
      return p.second.FirstStep(it->first).has_value();
    });
    const auto next = std::next(it);
    if (!needed) TakeKept(it);
    it = next;
  }
  covered_bytes_ = kept_bytes();
  CountUncovered();
}

void FunctionQueue::Rewind(Function& function, uint32_t to, RolledBack* result) {
  if (function.work.assignment != nullptr) {
    function.next_step = 0;
    return;
  }
  const uint32_t from = std::max(function.next_step, to);
  result->functions += from > to ? 1 : 0;
  result->steps += from - to;
  for (size_t step = to; step < from && step < function.samples.size(); ++step) {
    result->samples += function.samples[step];
  }
  function.next_step = to;
}

FunctionQueue::RolledBack FunctionQueue::RollBack(CheckpointNumber checkpoint) {
  const auto found = points_.find(checkpoint);
  MU_CHECK(found != points_.end());
  points_.erase(std::next(found), points_.end());
  const Point& point = found->second;
  repeats_cancelled_ = false;
  RolledBack result;
  StopRuns();
  // Without rounds, steps keep the places in the job that they have been given.
  if (point.round > 0 && rules_.on()) round_ = point.round;
  for (auto& [id, function] : functions_) {
    if (const auto first = point.FirstStep(id); first && function.work.updates)
      Rewind(function, *first, &result);
  }
  for (auto it = kept_.begin(); it != kept_.end();) {
    const std::optional<uint32_t> first = point.FirstStep(it->first);
    if (!first.has_value()) {
      ++it;  // an older point lacks it
      continue;
    }
    Rewind(it->second, *first, &result);
    const FunctionId id = it->first;
    queued_.insert(id);
    assignments_ += it->second.work.assignment != nullptr ? 1 : 0;
    const auto next = std::next(it);
    functions_.emplace(id, TakeKept(it));
    it = next;
  }
  CountUncovered();
  return result;
}

void FunctionQueue::Resume(CheckpointNumber checkpoint, const Position& position) {
  scheduled_ = begun_ = true;
  next_id_ = std::max(next_id_, position.next_id);
  points_ = {{checkpoint, PointOf(position)}};
  for (const auto& [id, function] : position.unfinished) {
    Function& copy = functions_[id] = function;
    copy.worker.reset();
    copy.run = RunId();
    copy.finished = false;
    CountAwaited(copy, true);
    after_ = std::max(after_, copy.after);
    copy.delivered = copy.next_step;
    queued_.insert(id);
    assignments_ += copy.work.assignment != nullptr ? 1 : 0;
    if (!copy.bound) CountUnbound(copy.work, true);
  }
  CountUncovered();
}

std::vector<CheckpointNumber> FunctionQueue::points() const {
  std::vector<CheckpointNumber> points;
  for (const auto& [checkpoint, point] : points_) points.push_back(checkpoint);
  return points;
}

void FunctionQueue::ForgetPoints() {
  points_.clear();
  CountUncovered();
}

void FunctionQueue::CountUncovered() {
  if (points_.empty()) {
    uncovered_ = kept_.size();
    return;
  }
  const Point& newest = points_.rbegin()->second;
  uncovered_ = static_cast<size_t>(std::count_if(kept_.begin(), kept_.end(), [&](const auto& f) {
    return newest.FirstStep(f.first).has_value();
  }));
}

FunctionQueue::RolledBack FunctionQueue::Repeating() const {
  RolledBack result;
  for (const auto& [id, function] : functions_) {
    if (!function.work.updates || function.work.assignment != nullptr) continue;
    for (size_t step = function.next_step; step < function.delivered; ++step) {
      const uint32_t samples = step < function.samples.size() ? function.samples[step] : 0;
      result.steps += samples > 0 || function.work.dataset == 0 ? 1 : 0;
      result.samples += samples;
    }
  }
  return result;
}

FunctionId FunctionQueue::BeginAssignment() {
  const FunctionId id = next_id_;
  next_id_ = next_id_.Next();
  assigning_.insert(id);
  return id;
}

void FunctionQueue::Assigned(FunctionId id, std::shared_ptr<const Assignment> assignment) {
  assigning_.erase(id);
  Function function;
  function.work.assignment = std::move(assignment);
  function.work.updates = true;
  function.steps = function.next_step = function.delivered = 1;
  function.bound = function.finished = true;
  Keep(id, std::move(function));
}

std::optional<FunctionId> FunctionQueue::NextAssignment() const {
  if (functions_.empty() || functions_.begin()->second.work.assignment == nullptr)
    return std::nullopt;
  return functions_.begin()->first;
}

void FunctionQueue::AssignmentDone(FunctionId id) {
  const auto it = functions_.find(id);
  if (it == functions_.end() || it->second.work.assignment == nullptr) return;
  it->second.next_step = 1;
  queued_.erase(id);
  --assignments_;
  Keep(id, std::move(it->second));
  functions_.erase(it);
}

bool FunctionQueue::IsRepeating(FunctionId before) const {
  if (unfinished() == awaited_) return false;
  // Repeats are the oldest, so this looks at few.
  for (const auto& [id, function] : functions_) {
    if (id >= before || IsInGroup(id)) return false;
    if (!function.awaited()) return true;
  }
  return false;
}

bool FunctionQueue::WaitsForRepeats(FunctionId id, const Function& function) const {
  // Beside training a group reads what is there, but for what had been joined before it. Repeats
  // that were cancelled are made again.
  if (IsInGroup(id)) {
    return function.work.view == ViewId() &&
           (repeats_cancelled_ || IsRepeating(IsTrainingAwaited() ? turn() : id));
  }
  if (!functions_.empty() && functions_.begin()->first < function.after) return true;
  if (function.work.updates || function.work.view != ViewId() || !IsRepeating(id)) return false;
  // A round that is repeated may have to be filled by what comes after this function.
  return !rules_.on() || !IsTrainingAwaited() ||
         std::none_of(functions_.begin(), functions_.lower_bound(id),
                      [](const auto& f) { return f.second.training_awaited(); });
}

void FunctionQueue::CountAwaited(const Function& function, bool more) {
  const auto change = [more](size_t* count) { *count += more ? 1 : -1; };
  if (function.awaited()) change(&awaited_);
  if (function.training_awaited()) change(&training_awaited_);
}

}  // namespace mu
