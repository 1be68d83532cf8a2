#include "coordinator/cluster/function_queue.h"

namespace mu {

FunctionId FunctionQueue::Schedule(FunctionWork work) {
  const FunctionId id = next_id_;
  next_id_ = next_id_.Next();
  Function& function = functions_[id];
  function.work = work;
  function.steps = work.steps;
  ++queued_;
  return id;
}

void FunctionQueue::WorkerReady(WorkerId worker, uint64_t version) { workers_[worker].version = version; }

void FunctionQueue::Requeue(Function& function) {
  if (const auto it = workers_.find(*function.worker); it != workers_.end()) --it->second.in_flight;
  function.worker.reset();
  function.run = RunId();
  ++queued_;
}

uint64_t FunctionQueue::WorkerLost(WorkerId worker) {
  uint64_t steps = 0;
  for (auto& [id, function] : functions_) {
    if (function.worker != worker) continue;
    steps += function.steps - function.next_step;
    Requeue(function);
  }
  workers_.erase(worker);
  return steps;
}

std::optional<WorkerId> FunctionQueue::PickWorker(uint64_t needs_version) const {
  std::optional<WorkerId> best;
  size_t best_in_flight = in_flight_;
  for (const auto& [id, worker] : workers_) {
    if (worker.version >= needs_version && worker.in_flight < best_in_flight) {
      best = id;
      best_in_flight = worker.in_flight;
    }
  }
  return best;
}

std::vector<StartRun> FunctionQueue::Dispatch(std::vector<FunctionId>* completed) {
  std::vector<StartRun> starts;
  for (auto it = functions_.begin(); it != functions_.end() && queued_ > 0;) {
    Function& function = it->second;
    if (function.worker.has_value()) {
      ++it;
      continue;
    }
    const std::optional<WorkerId> worker = PickWorker(function.work.needs_version);
    // Functions start in order: none overtakes one that waits for a worker.
    if (!worker.has_value()) break;
    if (!function.bound) {
      function.bound = true;
      if (function.work.dataset != 0) {
        function.batches = binder_(function.work.dataset, *worker, function.work.steps);
        function.steps = 0;
        for (const auto& range : function.batches) function.steps += range.batches();
      }
    }
    if (function.next_step >= function.steps) {
      completed->push_back(it->first);
      --queued_;
      it = functions_.erase(it);
      continue;
    }
    function.worker = *worker;
    function.run = next_run_;
    next_run_ = next_run_.Next();
    ++function.attempts;
    ++workers_[*worker].in_flight;
    --queued_;
    starts.push_back({it->first, function.run, *worker, function.next_step, function.steps});
    ++it;
  }
  return starts;
}

bool FunctionQueue::StepDone(FunctionId id, RunId run, uint32_t step) {
  const auto it = functions_.find(id);
  if (it == functions_.end() || it->second.run != run || it->second.next_step != step) return false;
  ++it->second.next_step;
  return true;
}

FunctionQueue::Ended FunctionQueue::RunEnded(FunctionId id, RunId run) {
  const auto it = functions_.find(id);
  if (it == functions_.end() || it->second.run != run || !it->second.worker) return Ended::kIgnored;
  if (it->second.next_step < it->second.steps) {
    Requeue(it->second);
    return Ended::kRequeued;
  }
  if (const auto worker = workers_.find(*it->second.worker); worker != workers_.end()) {
    --worker->second.in_flight;
  }
  functions_.erase(it);
  return Ended::kCompleted;
}

bool FunctionQueue::Remove(FunctionId id, RunId run) {
  const auto it = functions_.find(id);
  if (it == functions_.end() || it->second.run != run || !it->second.worker) return false;
  if (const auto worker = workers_.find(*it->second.worker); worker != workers_.end()) {
    --worker->second.in_flight;
  }
  functions_.erase(it);
  return true;
}

std::vector<FunctionId> FunctionQueue::CancelAll() {
  std::vector<FunctionId> removed;
  for (const auto& [id, function] : functions_) removed.push_back(id);
  functions_.clear();
  queued_ = 0;
  for (auto& [id, worker] : workers_) worker.in_flight = 0;
  return removed;
}

FunctionId FunctionQueue::low_water() const {
  return functions_.empty() ? next_id_ : functions_.begin()->first;
}

const FunctionQueue::Function* FunctionQueue::Find(FunctionId id) const {
  const auto it = functions_.find(id);
  return it == functions_.end() ? nullptr : &it->second;
}

size_t FunctionQueue::InFlight(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? 0 : it->second.in_flight;
}

}  // namespace mu
