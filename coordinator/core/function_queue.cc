#include "coordinator/core/function_queue.h"

#include <algorithm>
#include <iterator>

#include "coordinator/core/protections.h"

namespace mu {
namespace {

// One is the fault of a worker's process or machine, so many are the function's or of all workers.
constexpr uint32_t kMostUnreadable = 3;

}  // namespace

FunctionId FunctionQueue::Schedule(FunctionWork work) {
  const FunctionId id = next_id_;
  next_id_ = next_id_.Next();
  scheduled_ = true;
  Function& function = functions_[id];
  function.work = work;
  function.steps = work.steps;
  ++queued_;
  return id;
}

std::map<FunctionId, FunctionQueue::Function>::iterator FunctionQueue::Current(FunctionId id,
                                                                               RunId run) {
  const auto it = functions_.find(id);
  return it != functions_.end() && it->second.run == run && it->second.worker ? it
                                                                              : functions_.end();
}

void FunctionQueue::Requeue(Function& function) {
  Worker& worker = workers_.at(*function.worker);
  --worker.in_flight;
  worker.last_run = RunId();  // it may have been cancelled on its way: nothing must wait for it
  function.worker.reset();
  function.run = RunId();
  ++queued_;
}

void FunctionQueue::WorkerLost(WorkerId worker) {
  for (auto& [id, function] : functions_) {
    if (function.worker == worker) Requeue(function);
  }
  std::erase_if(superseded_, [&](const auto& run) { return run.second.worker == worker; });
  workers_.erase(worker);
}

std::map<FunctionId, FunctionQueue::Function>::iterator FunctionQueue::FirstOn(WorkerId worker) {
  // A worker runs its functions in the order in which they were started there.
  auto first = functions_.end();
  for (auto it = functions_.begin(); it != functions_.end(); ++it) {
    if (it->second.worker != worker) continue;
    if (first == functions_.end() || it->second.run < first->second.run) first = it;
  }
  return first;
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
    if (function.worker.has_value()) Requeue(function);
    function.lost = function.backups = 0;  // what it waited for may have been a server
  }
  ForgetSuperseded();
}

std::vector<StartRun> FunctionQueue::Dispatch(std::vector<FunctionId>* completed, const Held& held,
                                              std::map<FunctionId, uint64_t>* without_data) {
  std::vector<StartRun> starts;
  for (auto it = functions_.begin(); it != functions_.end() && queued_ > 0;) {
    Function& function = it->second;
    if (function.work.assignment != nullptr) break;  // nothing overtakes it
    if (function.worker.has_value()) {
      ++it;
      continue;
    }
    if (held != nullptr && function.work.updates && held(it->first, function.bound)) break;
    const std::optional<WorkerId> worker = PickWorker(function);
    // Functions start in order: none overtakes one that waits for a worker.
    if (!worker.has_value()) break;
    if (!function.bound) {
      if (function.work.dataset != 0) {
        auto batches = binder_(function.work.dataset, *worker, function.work.steps);
        if (!batches.has_value()) break;
        function.batches = *std::move(batches);
        function.steps = 0;
        for (const auto& range : function.batches) function.steps += range.batches;
      }
      function.bound = true;
      function.work.step_offset = taken_steps_;
      if (function.work.trains) taken_steps_ += function.steps;
    }
    if (function.next_step >= function.steps) {
      completed->push_back(it->first);
      if (without_data != nullptr && function.steps == 0)
        (*without_data)[it->first] = function.work.dataset;
      --queued_;
      Complete(it++);
      continue;
    }
    function.worker = *worker;
    function.run = next_run_;
    next_run_ = next_run_.Next();
    Worker& starts_on = workers_[*worker];
    if (starts_on.in_flight++ == 0) starts_on.news = true;
    --queued_;
    RunId& last_run = starts_on.last_run;
    starts.push_back(
        {it->first, function.run, *worker, function.next_step, function.steps, last_run});
    last_run = function.run;
    NotePassedOver();
    ++it;
  }
  return starts;
}

bool FunctionQueue::StepDone(FunctionId id, RunId run, uint32_t step, uint32_t samples,
                             bool* current) {
  const auto it = functions_.find(id);
  const bool taken = it != functions_.end() && it->second.next_step == step &&
                     (Current(id, run) == it || TakeBack(id, it->second, run));
  if (current != nullptr) *current = taken;
  if (!taken) return false;
  Function& function = it->second;
  ++function.next_step;
  function.lost = function.backups = 0;
  workers_.at(*function.worker).news = true;
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
  if (it->second.work.updates && it->second.steps > 0) {
    it->second.worker.reset();
    it->second.run = RunId();
    it->second.finished = true;
    it->second.backups = 0;
    it->second.avoid = {};
    Keep(it->first, std::move(it->second));
  }
  functions_.erase(it);
}

FunctionQueue::Ended FunctionQueue::RunEnded(FunctionId id, RunId run) {
  const auto it = Current(id, run);
  if (it == functions_.end()) {
    if (const auto superseded = superseded_.find(run); superseded != superseded_.end())
      EndSuperseded(superseded);
    return Ended::kIgnored;
  }
  if (it->second.next_step < it->second.steps) {
    Requeue(it->second);
    return Ended::kRequeued;
  }
  Worker& worker = workers_.at(*it->second.worker);
  --worker.in_flight;
  worker.news = true;
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
  --workers_.at(*it->second.worker).in_flight;
  functions_.erase(it);
  return true;
}

std::vector<FunctionId> FunctionQueue::CancelAll() {
  std::vector<FunctionId> removed;
  for (auto& [id, function] : functions_) {
    if (!function.finished) {
      removed.push_back(id);
      continue;
    }
    repeats_cancelled_ = true;
    function.worker.reset();
    function.run = RunId();
    function.unreadable = function.lost = 0;  // what was said of it has been said
    Keep(id, std::move(function));
  }
  functions_.clear();
  assigning_.clear();  // the fence that follows refuses them: they are made again under other ids
  queued_ = 0;
  for (auto& [id, worker] : workers_) {
    worker.in_flight = 0;
    worker.last_run = RunId();
  }
  ForgetSuperseded();
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
