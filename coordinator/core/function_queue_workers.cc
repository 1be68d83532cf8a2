// The queue's dealings with workers: who may run what, and how fast they have been.
#include <utility>

#include "coordinator/core/function_queue.h"

namespace mu {
namespace {

// Without a result for so long, and so many times its own time for a step, nobody waits for it.
constexpr double kLateSeconds = 1;
constexpr double kLateTimes = 5;
// Functions that are dispatched by turns; the pools of others are made anew when it is their turn.
constexpr size_t kMostPools = 8;

}  // namespace

void FunctionQueue::WorkerReady(WorkerId id, uint64_t version) {
  Worker& worker = workers_[id];
  worker.version = version;
  Changed(id, worker);
}

void FunctionQueue::RequireVersion(uint64_t version) {
  if (least_version_ == version) return;
  least_version_ = version;
  pools_.clear();
}

void FunctionQueue::WorkerDrains(WorkerId id) {
  Worker& worker = workers_[id];  // perhaps its first installation is still under way
  worker.draining = true;
  Changed(id, worker);
}

void FunctionQueue::SetAside(WorkerId id, bool aside) {
  Worker& worker = workers_[id];  // as above
  worker.aside = aside;
  Changed(id, worker);
}

void FunctionQueue::StepsTook(WorkerId id, FunctionId function_id, double seconds_each) {
  const Function* const function = Find(function_id);
  if (function == nullptr) return;
  times_.Observe(function->work.fingerprint, seconds_each);
  const auto it = workers_.find(id);
  if (it == workers_.end()) return;
  it->second.pace.Observe(function->work.fingerprint, seconds_each);
  Changed(id, it->second);
}

bool FunctionQueue::MayRun(const Worker& worker, uint64_t version) {
  return !worker.draining && !worker.aside && worker.superseded == 0 && worker.version >= version;
}

bool FunctionQueue::IsLate(const Worker& worker, std::optional<double> step_seconds) {
  return !worker.news && worker.silent >= kLateSeconds &&
         worker.silent >= kLateTimes * step_seconds.value_or(0);
}

void FunctionQueue::Enter(WorkerId id, const Worker& worker, Pool* pool) {
  if (!MayRun(worker, pool->version)) return pool->workers.Remove(id);
  const std::optional<double> step_seconds = worker.pace.Seconds(pool->fingerprint);
  pool->workers.Set(id, {worker.runs.size(), step_seconds, IsLate(worker, step_seconds)});
}

void FunctionQueue::Changed(WorkerId id, const Worker& worker) {
  for (Pool& pool : pools_) Enter(id, worker, &pool);
}

WorkerPool& FunctionQueue::PoolFor(const FunctionWork& work) {
  const uint64_t version = VersionFor(work);
  for (auto it = pools_.begin(); it != pools_.end(); ++it) {
    if (it->fingerprint != work.fingerprint || it->version != version) continue;
    pools_.splice(pools_.begin(), pools_, it);
    return it->workers;
  }
  if (pools_.size() == kMostPools) pools_.pop_back();
  Pool& pool = pools_.emplace_front(Pool{work.fingerprint, version, WorkerPool(in_flight_)});
  for (const auto& [id, worker] : workers_) Enter(id, worker, &pool);
  return pool.workers;
}

size_t FunctionQueue::InFlight(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? 0 : it->second.runs.size() + it->second.superseded;
}

}  // namespace mu
