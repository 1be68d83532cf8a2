// The queue's groups beside training.
#include "coordinator/core/function_queue.h"

namespace mu {

std::map<FunctionId, FunctionQueue::Function>::iterator FunctionQueue::Erase(
    std::map<FunctionId, Function>::iterator it) {
  if (const auto lane = lanes_.find(it->second.work.group); lane != lanes_.end()) {
    --unfinished_in_groups_;
    if (--lane->second.unfinished == 0) lanes_.erase(lane);
  }
  return functions_.erase(it);
}

std::vector<FunctionQueue::Cancelled> FunctionQueue::CancelGroup(GroupId group) {
  std::vector<Cancelled> cancelled;
  if (!lanes_.contains(group)) return cancelled;
  for (auto it = functions_.lower_bound(kFirstInGroups); it != functions_.end();) {
    Function& function = it->second;
    if (function.work.group != group) {
      ++it;
      continue;
    }
    if (!function.bound) CountUnbound(function.work, false);
    Cancelled& one = cancelled.emplace_back(Cancelled{it->first, WorkerId(), RunId()});
    if (function.worker.has_value()) {
      one.worker = *function.worker;
      one.run = function.run;
      TakeFromWorker(function);
    }
    it = Erase(it);
  }
  return cancelled;
}

size_t FunctionQueue::queued(GroupId group) const {
  if (group == GroupId()) return queued_.size();
  const auto lane = lanes_.find(group);
  return lane == lanes_.end() ? 0 : lane->second.queued.size();
}

size_t FunctionQueue::unfinished(GroupId group) const {
  if (group == GroupId()) return unfinished();
  const auto lane = lanes_.find(group);
  return lane == lanes_.end() ? 0 : lane->second.unfinished;
}

size_t FunctionQueue::running() const {
  size_t queued = queued_.size();
  for (const auto& [group, lane] : lanes_) queued += lane.queued.size();
  return functions_.size() - queued;
}

bool FunctionQueue::IsRead(uint64_t dataset) const {
  for (const auto& [id, function] : functions_) {
    if (function.work.dataset == dataset) return true;
  }
  return false;
}

std::set<GroupId> FunctionQueue::UsersOf(Fingerprint definition) const {
  std::set<GroupId> users;
  for (const auto& [id, function] : functions_) {
    if (function.work.fingerprint == definition) users.insert(function.work.group);
  }
  return users;
}

}  // namespace mu
