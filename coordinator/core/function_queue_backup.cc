// The queue's backup runs: what hangs on a worker runs elsewhere too, while the worker is not lost.
// (Backup tasks of MapReduce, Dean and Ghemawat 2004, section 3.6.)
#include <algorithm>
#include <utility>

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
  const bool others_had_work = std::exchange(dispatched_, false);
  BySilence by_silence;
  bool hangs = false;
  for (auto& [id, worker] : workers_) {
    worker.silent = worker.news || worker.runs.empty() ? 0 : worker.silent + passed;
    worker.news = false;
    if (worker.runs.empty() && others_had_work) worker.pace.Idle(passed);
    Changed(id, worker);
    hangs |= worker.silent >= backup_.least_seconds;
  }
  if (!hangs) return {};
  for (const auto& [id, worker] : workers_) by_silence.push_back({worker.silent, id});
  std::sort(by_silence.begin(), by_silence.end());
  std::vector<BackupRun> backups;
  for (const auto& [id, worker] : workers_) {
    if (worker.silent < backup_.least_seconds) continue;
    const auto first = FirstOn(id);
    if (first == functions_.end()) continue;
    const FunctionWork& work = first->second.work;
    const double median = times_.Median(work.fingerprint).value_or(0);
    if (worker.silent < backup_.times_median * median || !OthersGoOn(id, work, by_silence))
      continue;
    const bool stays = first->second.backups >= kMostBackups;
    first->second.backups += stays ? 0 : 1;
    // What waits behind it on this worker, too.
    for (const FunctionId function : RunningOn(id)) {
      if (stays && function == first->first) continue;
      backups.push_back({function, id, worker.silent});
      Function& hung = functions_.at(function);
      Supersede(function, hung);
      QueueOf(hung.work.group).insert(function);
    }
  }
  return backups;
}

bool FunctionQueue::OthersGoOn(WorkerId silent, const FunctionWork& work,
                               const BySilence& workers) const {
  // Where all are silent alike they wait for something else, a server perhaps.
  const double most = workers_.at(silent).silent / 2;
  for (const auto& [silence, id] : workers) {
    if (silence > most) return false;
    if (id != silent && MayRun(workers_.at(id), VersionFor(work))) return true;
  }
  return false;
}

void FunctionQueue::Supersede(FunctionId id, Function& function) {
  Worker& worker = workers_.at(*function.worker);
  ++worker.superseded;
  superseded_[function.run] = {id, *function.worker};
  TakeFromWorker(function);
}

bool FunctionQueue::TakeBack(FunctionId id, Function& function, RunId run) {
  const auto it = superseded_.find(run);
  if (it == superseded_.end() || it->second.function != id) return false;
  const WorkerId worker = it->second.worker;
  if (function.worker.has_value()) {
    Supersede(id, function);
  } else {
    QueueOf(function.work.group).erase(id);
  }
  EndSuperseded(it);
  function.worker = worker;
  function.run = run;
  Worker& taken_back = workers_.at(worker);
  taken_back.runs.emplace(run, id);
  Changed(worker, taken_back);
  return true;
}

void FunctionQueue::EndSuperseded(std::map<RunId, Superseded>::iterator run) {
  Worker& worker = workers_.at(run->second.worker);
  --worker.superseded;
  Changed(run->second.worker, worker);
  superseded_.erase(run);
}

void FunctionQueue::ForgetSuperseded(bool of_groups) {
  for (auto it = superseded_.begin(); it != superseded_.end();) {
    const auto run = it++;
    if (of_groups || !IsInGroup(run->second.function)) EndSuperseded(run);
  }
}

}  // namespace mu
