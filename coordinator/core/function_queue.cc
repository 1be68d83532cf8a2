#include "coordinator/core/function_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "coordinator/core/protections.h"

namespace mu {
namespace {

// One is the fault of a worker's process or machine, so many are the function's or of all workers.
constexpr uint32_t kMostUnreadable = 3;

}  // namespace

FunctionId FunctionQueue::Schedule(FunctionWork work) {
  FunctionId& next = work.group == GroupId() ? next_id_ : next_in_groups_;
  const FunctionId id = next;
  next = next.Next();
  if (work.group == GroupId()) {
    scheduled_ = true;
    begun_ |= work.trains;
  } else {
    ++lanes_[work.group].unfinished;
    ++unfinished_in_groups_;
  }
  const bool all_finished = awaited_ == 0;
  Function& function = functions_[id];
  function.steps = work.steps;
  function.work = std::move(work);
  CountAwaited(function, true);
  if (function.awaited()) function.after = after_ = all_finished ? id : after_;
  CountUnbound(function.work, true);
  QueueOf(function.work.group).insert(id);
  return id;
}

std::map<FunctionId, FunctionQueue::Function>::iterator FunctionQueue::Current(FunctionId id,
                                                                               RunId run) {
  const auto it = functions_.find(id);
  return it != functions_.end() && it->second.run == run && it->second.worker ? it
                                                                              : functions_.end();
}

void FunctionQueue::CountUnbound(const FunctionWork& work, bool added) {
  if (work.dataset == 0) return;
  uint64_t& steps = unbound_[work.dataset];
  steps = added ? steps + work.steps : steps - work.steps;
}

uint64_t FunctionQueue::UnboundSteps(uint64_t dataset) const {
  const auto it = unbound_.find(dataset);
  return it == unbound_.end() ? 0 : it->second;
}

void FunctionQueue::TakeFromWorker(Function& function) {
  Worker& worker = workers_.at(*function.worker);
  worker.runs.erase(function.run);
  Changed(*function.worker, worker);
  function.worker.reset();
  function.run = RunId();
}

void FunctionQueue::Requeue(FunctionId id, Function& function) {
  TakeFromWorker(function);
  QueueOf(function.work.group).insert(id);
}

void FunctionQueue::WorkerLost(WorkerId id) {
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  for (const auto& [run, function] : std::map(it->second.runs))
    Requeue(function, functions_.at(function));
  std::erase_if(superseded_, [&](const auto& run) { return run.second.worker == id; });
  workers_.erase(it);
  for (Pool& pool : pools_) pool.workers.Remove(id);
}

std::vector<FunctionId> FunctionQueue::RunningOn(WorkerId worker) const {
  std::vector<FunctionId> running;
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return running;
  for (const auto& [run, function] : it->second.runs) running.push_back(function);
  std::sort(running.begin(), running.end());
  return running;
}

std::map<FunctionId, FunctionQueue::Function>::iterator FunctionQueue::FirstOn(WorkerId worker) {
  const auto it = workers_.find(worker);
  if (it == workers_.end() || it->second.runs.empty()) return functions_.end();
  // A worker runs its functions in the order in which they were started there.
  return functions_.find(it->second.runs.begin()->second);
}

std::optional<FunctionId> FunctionQueue::DeadlyOn(WorkerId worker, uint32_t most) {
  const auto first = FirstOn(worker);
  if (first == functions_.end()) return std::nullopt;
  Function& function = first->second;
  // It may be the worker's fault: then others do it.
  if (++function.lost > 1 && !function.Avoids(worker)) function.avoid.push_back(worker);
  if (function.lost < most) return std::nullopt;
  return first->first;
}

void FunctionQueue::StopRuns() {
  for (auto& [id, function] : functions_) {
    if (function.worker.has_value()) Requeue(id, function);
    function.lost = function.backups = 0;  // what it waited for may have been a server
  }
  queued_.insert(contributed_.begin(), contributed_.end());
  late_.clear();
  ForgetRound();
  ForgetSuperseded(/*of_groups=*/true);
}

std::vector<StartRun> FunctionQueue::Dispatch(std::vector<FunctionId>* completed, const Held& held,
                                              std::map<FunctionId, WithoutData>* without_data,
                                              const Open& open) {
  Dispatching dispatching = {held, open, completed, without_data, {}, 0};
  waits_for_steps_ = false;
  surplus_at_.reset();
  if (rules_.on()) dispatching.in_round = RunningContributions() + contributed_.size();
  // Whoever started last has its next turn after the others.
  std::vector<GroupId> turns = {GroupId()};
  for (const auto& [group, lane] : lanes_) turns.push_back(group);
  std::rotate(turns.begin(), std::upper_bound(turns.begin(), turns.end(), last_turn_), turns.end());
  while (!turns.empty())
    std::erase_if(turns, [&](GroupId group) { return !StartNext(group, &dispatching); });
  return std::move(dispatching.starts);
}

bool FunctionQueue::StartNext(GroupId group, Dispatching* dispatching) {
  if (group != GroupId() && !lanes_.contains(group)) return false;  // its last one was without data
  std::set<FunctionId>& queue = QueueOf(group);
  if (queue.empty()) return false;
  size_t& in_round = dispatching->in_round;
  const auto it = functions_.find(*queue.begin());
  Function& function = it->second;
  if (function.work.assignment != nullptr) return false;  // nothing overtakes it
  if (WaitsForRepeats(it->first, function)) return false;
  if (dispatching->open != nullptr && !dispatching->open(function.work)) return false;
  if (dispatching->held != nullptr && function.work.updates &&
      dispatching->held(it->first, function.bound))
    return false;
  if (TooFarAhead(it->first, function)) {
    waits_for_steps_ = true;
    if (!std::exchange(function.waited, true)) ++waited_for_steps_;
    return false;
  }
  const bool contributes = Contributes(function);
  if (contributes && (!decided_.empty() || in_round >= rules_.most())) return false;
  const size_t waiting =
      contributes ? std::min<size_t>(queue.size(), rules_.most() - in_round) : queue.size();
  const std::optional<WorkerId> worker = PoolFor(function.work).Pick(waiting, function.avoid);
  // Functions start in order: none overtakes one that waits for a worker.
  if (!worker.has_value()) return false;
  if (contributes && in_round >= rules_.replicas && !MayHaveSurplus(workers_.at(*worker), in_round))
    return false;
  if (!function.bound && !Bind(function, *worker)) return false;
  if (function.next_step >= function.steps) {
    dispatching->completed->push_back(it->first);
    if (dispatching->without_data != nullptr && function.steps == 0)
      (*dispatching->without_data)[it->first] = {function.work.dataset, function.work.group};
    queue.erase(queue.begin());
    Complete(it);
    return true;
  }
  if (contributes && rules_.one_lease()) {
    const std::optional<LeaseKey> lease = NextLease(function);
    if (in_round > 0 && lease != round_lease_) return false;
    round_lease_ = lease;
  }
  in_round += contributes ? 1 : 0;
  function.worker = *worker;
  function.run = next_run_;
  next_run_ = next_run_.Next();
  Worker& starts_on = workers_.at(*worker);
  if (starts_on.runs.empty()) {
    starts_on.news = true;
    starts_on.began_at = time_;
  }
  starts_on.runs.emplace(function.run, it->first);
  dispatching->starts.push_back({it->first, function.run, *worker, function.next_step,
                                 contributes ? function.next_step + 1 : function.steps,
                                 contributes ? round_ : 0});
  Changed(*worker, starts_on);
  queue.erase(queue.begin());
  dispatched_ = true;
  last_turn_ = group;
  return true;
}

bool FunctionQueue::Bind(Function& function, WorkerId worker) {
  if (function.work.dataset != 0) {
    auto batches = binder_(function.work.dataset, worker, function.work.steps);
    if (!batches.has_value()) return false;
    function.batches = *std::move(batches);
    function.steps = 0;
    for (const auto& range : function.batches) function.steps += range.batches;
  }
  function.bound = true;
  CountUnbound(function.work, false);
  function.work.step_offset = taken_steps_;
  if (!function.work.trains) function.work.draw_offset = kFirstReadingDraw + reading_steps_;
  (function.work.trains ? taken_steps_ : reading_steps_) += function.steps;
  return true;
}

bool FunctionQueue::TooFarAhead(FunctionId id, const Function& function) const {
  // A round bounds its own steps, none of which counts as applied before all of them do.
  if (!most_ahead_.has_value() || !function.work.trains || Contributes(function) ||
      MU_BROKEN(far_ahead))
    return false;
  // Functions start in order, so the first that is not finished has the oldest step without a
  // result.
  for (const auto& [other, oldest] : functions_) {
    if (other >= id) break;
    if (!oldest.work.trains) continue;
    const uint64_t applied = oldest.work.step_offset + oldest.next_step;
    const uint64_t end = function.bound ? function.work.step_offset + function.steps
                                        : taken_steps_ + function.work.steps;
    return end > applied + *most_ahead_ + 1;
  }
  return false;
}

bool FunctionQueue::StepDone(FunctionId id, RunId run, uint32_t step, uint32_t samples,
                             bool* current) {
  const auto it = functions_.find(id);
  const bool taken = it != functions_.end() && it->second.next_step == step &&
                     (Current(id, run) == it || TakeBack(id, it->second, run));
  if (current != nullptr) *current = taken;
  if (!taken) return false;
  Function& function = it->second;
  function.lost = function.backups = 0;
  Worker& worker = workers_.at(*function.worker);
  worker.began_at = time_;
  if (!std::exchange(worker.news, true)) Changed(*function.worker, worker);
  return CountStep(function, step, samples);
}

bool FunctionQueue::CountStep(Function& function, uint32_t step, uint32_t samples) {
  ++function.next_step;
  if (step < function.delivered) return false;
  function.delivered = step + 1;
  if (function.work.updates) {
    // A function that was resumed has delivered the earlier ones elsewhere
    function.samples.resize(step);
    function.samples.push_back(samples);
  }
  return true;
}

void FunctionQueue::Complete(std::map<FunctionId, Function>::iterator it) {
  CountAwaited(it->second, false);
  if (it->second.work.updates && it->second.steps > 0) {
    it->second.worker.reset();
    it->second.run = RunId();
    it->second.finished = true;
    it->second.backups = 0;
    it->second.avoid = {};
    Keep(it->first, std::move(it->second));
  }
  late_.erase(it->first);
  Erase(it);
}

FunctionQueue::Ended FunctionQueue::RunEnded(FunctionId id, RunId run) {
  const auto it = Current(id, run);
  if (it == functions_.end()) {
    if (const auto superseded = superseded_.find(run); superseded != superseded_.end()) {
      if (superseded->second.function == FunctionId())
        EndLate(id, &workers_.at(superseded->second.worker));
      EndSuperseded(superseded);
    }
    return Ended::kIgnored;
  }
  if (it->second.next_step < it->second.steps) {
    Requeue(id, it->second);
    return Ended::kRequeued;
  }
  workers_.at(*it->second.worker).news = true;
  TakeFromWorker(it->second);
  Complete(it);
  return Ended::kCompleted;
}

FunctionQueue::Ended FunctionQueue::ServerUnreached(FunctionId id, RunId run) {
  const auto it = Current(id, run);
  if (it != functions_.end() && !it->second.Avoids(*it->second.worker))
    it->second.avoid.push_back(*it->second.worker);
  return RunEnded(id, run);
}

FunctionQueue::Unreadable FunctionQueue::AnswerUnreadable(FunctionId id, RunId run) {
  const auto it = Current(id, run);
  if (it == functions_.end()) return Unreadable::kIgnored;
  return ++it->second.unreadable < kMostUnreadable ? Unreadable::kRunAgain : Unreadable::kGiveUp;
}

bool FunctionQueue::Remove(FunctionId id, RunId run) {
  const auto it = Current(id, run);
  if (it == functions_.end()) return false;
  CountAwaited(it->second, false);
  TakeFromWorker(it->second);
  late_.erase(id);
  Erase(it);
  return true;
}

std::vector<FunctionId> FunctionQueue::CancelAll(bool all) {
  std::vector<FunctionId> removed;
  if (all) decided_.clear();
  for (auto it = functions_.begin(); it != functions_.end() && !IsInGroup(it->first);) {
    auto& [id, function] = *it;
    if (decided_.contains(id)) {
      ++it;
      continue;
    }
    if (!function.bound) CountUnbound(function.work, false);
    CountAwaited(function, false);
    if (!function.finished) {
      removed.push_back(id);
    } else {
      repeats_cancelled_ = true;
      function.worker.reset();
      function.run = RunId();
      function.unreadable = function.lost = 0;  // what was said of it has been said
      Keep(id, std::move(function));
    }
    it = functions_.erase(it);
  }
  contributed_ = decided_;
  late_.clear();
  if (decided_.empty()) round_lease_.reset();
  assigning_.clear();  // the fence that follows refuses them: they are made again under other ids
  queued_.clear();
  assignments_ = 0;
  for (auto& [id, worker] : workers_) {
    std::erase_if(worker.runs, [](const auto& run) { return !IsInGroup(run.second); });
    Changed(id, worker);
  }
  ForgetSuperseded(/*of_groups=*/false);
  return removed;
}

FunctionId FunctionQueue::low_water() const {
  // Until something was scheduled, Resume may bring back functions with small ids.
  FunctionId mark = scheduled_ ? next_id_ : FunctionId(1);
  if (MU_BROKEN(low_water_stuck)) return FunctionId(1);
  if (MU_BROKEN(low_water_high)) {
    const auto waited = std::find_if(functions_.begin(), functions_.end(),
                                     [](const auto& f) { return !f.second.finished; });
    return waited == functions_.end() ? mark : std::min(mark, waited->first);
  }
  if (!functions_.empty()) mark = std::min(mark, functions_.begin()->first);
  if (!kept_.empty()) mark = std::min(mark, kept_.begin()->first);
  if (!assigning_.empty()) mark = std::min(mark, *assigning_.begin());
  return mark;
}

const FunctionQueue::Function* FunctionQueue::Find(FunctionId id) const {
  const auto it = functions_.find(id);
  return it == functions_.end() ? nullptr : &it->second;
}

}  // namespace mu
