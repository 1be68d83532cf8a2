// The queue's backup runs: what hangs on a worker runs elsewhere too, while the worker is not lost.
// (Backup tasks of MapReduce, Dean and Ghemawat 2004, section 3.6.)
#include <algorithm>
#include <iterator>

#include "coordinator/core/function_queue.h"

namespace mu {
namespace {

// Runs of one function that are given up. What hangs on more workers would hang on all.
constexpr uint32_t kMostBackups = 2;

}  // namespace

std::vector<FunctionQueue::BackupRun> FunctionQueue::Tick(double now) {
  // Time in which the coordinator itself did not run is nobody's silence.
  const double passed =
      now_.has_value() ? std::clamp(now - *now_, 0.0, backup_.least_seconds / 2) : 0;
  now_ = now;
  for (auto& [id, worker] : workers_) {
    worker.silent = worker.news || worker.in_flight == 0 ? 0 : worker.silent + passed;
    worker.news = false;
  }
  std::vector<BackupRun> backups;
  for (auto& [id, worker] : workers_) {
    if (worker.silent < backup_.least_seconds) continue;
    const auto first = FirstOn(id);
    if (first == functions_.end()) continue;
    const FunctionWork& work = first->second.work;
    const double median = times_.Median(work.fingerprint).value_or(0);
    if (worker.silent < backup_.times_median * median || !OthersGoOn(worker, work)) continue;
    const bool stays = first->second.backups >= kMostBackups;
    first->second.backups += stays ? 0 : 1;
    // What waits behind it on this worker, too.
    for (auto& [function_id, function] : functions_) {
      if (function.worker != id || (stays && function_id == first->first)) continue;
      backups.push_back({function_id, id, worker.silent});
      Supersede(function_id, function);
      ++queued_;
    }
  }
  return backups;
}

bool FunctionQueue::OthersGoOn(const Worker& silent, const FunctionWork& work) const {
  // Where all are silent alike they wait for something else, a server perhaps.
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
    return &other.second != &silent && MayRun(other.second, work) &&
           2 * other.second.silent <= silent.silent;
  });
}

void FunctionQueue::Supersede(FunctionId id, Function& function) {
  Worker& worker = workers_.at(*function.worker);
  --worker.in_flight;
  ++worker.superseded;
  worker.last_run = RunId();
  superseded_[function.run] = {id, *function.worker};
  function.worker.reset();
  function.run = RunId();
}

bool FunctionQueue::TakeBack(FunctionId id, Function& function, RunId run) {
  const auto it = superseded_.find(run);
  if (it == superseded_.end() || it->second.function != id) return false;
  const WorkerId worker = it->second.worker;
  if (function.worker.has_value()) {
    Supersede(id, function);
  } else {
    --queued_;
  }
  EndSuperseded(it);
  ++workers_.at(worker).in_flight;
  function.worker = worker;
  function.run = run;
  return true;
}

void FunctionQueue::EndSuperseded(std::map<RunId, Superseded>::iterator run) {
  --workers_.at(run->second.worker).superseded;
  superseded_.erase(run);
}

void FunctionQueue::ForgetSuperseded() {
  superseded_.clear();
  for (auto& [id, worker] : workers_) worker.superseded = 0;
}

}  // namespace mu
