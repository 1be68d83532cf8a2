// The queue's choice of a worker: the least loaded one, unless a slow one would hold up the end.
#include <algorithm>
#include <limits>

#include "coordinator/core/function_queue.h"

namespace mu {
namespace {

// A worker counts as slow from this many times the fastest one's time for a step.
constexpr double kSlow = 2;
// Without a result for so long, and so many times its own time for a step, nobody waits for it.
constexpr double kLateSeconds = 1;
constexpr double kLateTimes = 5;

}  // namespace

void FunctionQueue::WorkerReady(WorkerId worker, uint64_t version) {
  workers_[worker].version = version;
}

void FunctionQueue::WorkerDrains(WorkerId worker) {
  if (const auto it = workers_.find(worker); it != workers_.end()) it->second.draining = true;
}

void FunctionQueue::SetAside(WorkerId worker, bool aside) {
  if (const auto it = workers_.find(worker); it != workers_.end()) it->second.aside = aside;
}

void FunctionQueue::StepsTook(WorkerId worker, FunctionId id, double seconds_each) {
  const auto it = workers_.find(worker);
  const Function* const function = Find(id);
  if (it != workers_.end() && function != nullptr)
    it->second.pace.Observe(function->work.fingerprint, seconds_each);
  if (function != nullptr) times_.Observe(function->work.fingerprint, seconds_each);
}

bool FunctionQueue::MayRun(const Worker& worker, const FunctionWork& work) const {
  return !worker.draining && !worker.aside && worker.superseded == 0 &&
         worker.version >= std::max(work.needs_version, least_version_);
}

double FunctionQueue::FastestStep(const Function& function, bool avoids) const {
  const FunctionWork& work = function.work;
  double fastest = std::numeric_limits<double>::infinity();
  for (const auto& [id, worker] : workers_) {
    // Nobody is slow in comparison with one that will not run it.
    if (MayRun(worker, work) && !(avoids && function.Avoids(id)) && !IsLate(worker, work))
      fastest = std::min(fastest, worker.pace.Seconds(work.fingerprint).value_or(fastest));
  }
  return fastest;
}

bool FunctionQueue::IsLate(const Worker& worker, const FunctionWork& work) const {
  return !worker.news && worker.silent >= kLateSeconds &&
         worker.silent >= kLateTimes * worker.pace.Seconds(work.fingerprint).value_or(0);
}

double FunctionQueue::Slowness(const Worker& worker, const FunctionWork& work,
                               double fastest) const {
  const double times = worker.pace.Seconds(work.fingerprint).value_or(fastest) / fastest;
  return times >= kSlow ? times : 1;  // also where nothing is known
}

std::optional<WorkerId> FunctionQueue::PickWorker(const Function& function) const {
  const FunctionWork& work = function.work;
  // If none of them could reach the servers, the fault is not theirs.
  const bool avoids =
      !function.avoid.empty() && std::any_of(workers_.begin(), workers_.end(), [&](const auto& w) {
        return MayRun(w.second, work) && !function.Avoids(w.first);
      });
  const double fastest = FastestStep(function, avoids);
  std::optional<WorkerId> best;
  double best_end = 0, best_slowness = 1;  // in functions of the fastest worker
  double all_load = static_cast<double>(queued_), all_speed = 0;
  size_t best_in_flight = 0;
  for (const auto& [id, worker] : workers_) {
    if (!MayRun(worker, work) || (avoids && function.Avoids(id))) continue;
    // However fast it was, what waits would wait for ever if it hangs.
    const bool late = IsLate(worker, work);
    const double slowness = late ? 1 : Slowness(worker, work, fastest);
    all_load += late ? 0 : static_cast<double>(worker.in_flight);
    all_speed += late ? 0 : 1 / slowness;
    if (worker.in_flight >= in_flight_) continue;
    const double end = static_cast<double>(worker.in_flight + 1) * slowness;
    if (best.has_value() && end >= best_end) continue;
    best = id;
    best_end = end;
    best_slowness = slowness;
    best_in_flight = worker.in_flight;
  }
  if (!best.has_value() || best_slowness == 1) return best;
  // A slow worker is given a function only if the others would not have finished all that waits
  // before it has.
  const double others_load = all_load - static_cast<double>(best_in_flight);
  const double others_speed = all_speed - 1 / best_slowness;
  return others_speed > 0 && best_end > others_load / others_speed ? std::nullopt : best;
}

void FunctionQueue::NotePassedOver() {
  for (auto& [id, worker] : workers_) {
    if (worker.in_flight == 0) worker.pace.PassedOver();
  }
}

size_t FunctionQueue::InFlight(WorkerId worker) const {
  const auto it = workers_.find(worker);
  return it == workers_.end() ? 0 : it->second.in_flight + it->second.superseded;
}

}  // namespace mu
