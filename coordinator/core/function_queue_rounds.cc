// The queue's synchronous rounds: which steps contribute to the open round, and what follows its
// commitment.
#include <algorithm>
#include <utility>

#include "coordinator/core/function_queue.h"
#include "coordinator/core/protections.h"

namespace mu {
namespace {

// A contribution is late when it has taken so many times what steps of its function take.
constexpr double kLateTimes = 2;
// Who was late by no more than this part of a step still begins the next round with the others.
constexpr double kHardlyLate = 0.25;

}  // namespace

void FunctionQueue::SetRounds(const RoundRules& rules) {
  if (rules_.on()) counted_steps_ = taken_steps_;
  rules_ = rules;
  if (!rules.on()) return;
  // Learning-rate schedules count rounds as they counted steps before.
  if (taken_steps_ > counted_steps_) round_ = std::max(round_, taken_steps_ + 1);
  for (auto& [number, point] : points_) {
    if (point.round == 0) point.round = round_;
  }
}

size_t FunctionQueue::RunningContributions() const {
  size_t running = 0;
  for (const auto& [id, worker] : workers_) {
    for (const auto& [run, function] : worker.runs)
      running += Contributes(functions_.at(function)) ? 1 : 0;
  }
  return running;
}

bool FunctionQueue::MayHaveSurplus(const Worker& worker, size_t in_round) {
  // Only where nothing else of training would run.
  for (const auto& [run, function] : worker.runs) {
    if (!IsInGroup(function)) return false;
  }
  // Who has given its contribution would still compute another one when the next round begins,
  // which would have to do without it. So this is done in place of contributions that are late.
  if (!worker.gave) return true;
  std::map<Fingerprint, double> most;
  for (const auto& [id, other] : workers_) {
    for (const auto& [run, id_of] : other.runs) {
      const Function& function = functions_.at(id_of);
      if (!Contributes(function)) continue;
      const auto [time, added] = most.try_emplace(function.work.fingerprint);
      if (added) time->second = kLateTimes * times_.Median(function.work.fingerprint).value_or(0);
      const double late_at = other.began_at + time->second;
      if (late_at <= time_) {
        --in_round;
      } else {
        surplus_at_ = std::min(surplus_at_.value_or(late_at), late_at);
      }
    }
  }
  return in_round < rules_.replicas;
}

std::optional<FunctionQueue::LeaseKey> FunctionQueue::NextLease(const Function& function) {
  uint32_t end = 0;
  for (const BatchRange& range : function.batches) {
    end += range.batches;
    if (function.next_step < end)
      return LeaseKey{range.lease->dataset(), range.lease->epoch(), range.lease->index()};
  }
  return std::nullopt;
}

bool FunctionQueue::Contribute(FunctionId id, RunId run, uint32_t step) {
  const auto it = functions_.find(id);
  if (it == functions_.end() || contributed_.contains(id) || it->second.next_step != step ||
      !(Current(id, run) == it || TakeBack(id, it->second, run)))
    return false;
  Function& function = it->second;
  function.lost = function.backups = 0;
  Worker& worker = workers_.at(*function.worker);
  worker.news = worker.gave = true;
  worker.began_at = time_;
  TakeFromWorker(function);
  contributed_.insert(id);
  return true;
}

bool FunctionQueue::NothingCanJoin(bool nothing_more) const {
  if (contributed_.empty() || RunningContributions() > 0) return false;
  const auto first = std::find_if(queued_.begin(), queued_.end(), [this](FunctionId id) {
    const Function& function = functions_.at(id);
    return function.work.assignment != nullptr || Contributes(function) ||
           WaitsForRepeats(id, function);
  });
  if (first == queued_.end()) return nothing_more;
  const Function& function = functions_.at(*first);
  // Nothing overtakes it.
  if (!Contributes(function) || WaitsForRepeats(*first, function)) return true;
  return rules_.one_lease() && function.bound && NextLease(function) != round_lease_;
}

uint32_t FunctionQueue::RoundsMissedIfDue(FunctionId id) const {
  const auto it = late_.find(id);
  if (it == late_.end() || it->second < RoundRules::kMostLate || MU_BROKEN(never_due)) return 0;
  return it->second;
}

bool FunctionQueue::WaitsForDue(bool about_to_dispatch) const {
  return std::any_of(late_.begin(), late_.end(), [&](const auto& late) {
    if (RoundsMissedIfDue(late.first) == 0 || contributed_.contains(late.first)) return false;
    // What stays queued is not waited for: it may wait for an assignment, which waits for this
    // round. But it is the first to start in the next one, for nothing overtakes it. A run that
    // hangs may still be the one that counts, while no worker is free for another.
    return functions_.at(late.first).worker.has_value() ||
           (about_to_dispatch && queued_.contains(late.first)) ||
           std::any_of(superseded_.begin(), superseded_.end(),
                       [&](const auto& run) { return run.second.function == late.first; });
  });
}

bool FunctionQueue::CommitStep(FunctionId id, uint32_t samples) {
  Function& function = functions_.at(id);
  late_.erase(id);
  contributed_.erase(id);
  return CountStep(function, function.next_step, samples);
}

bool FunctionQueue::EndStep(FunctionId id) {
  const auto it = functions_.find(id);
  if (it->second.next_step < it->second.steps) {
    queued_.insert(id);
    return false;
  }
  Complete(it);
  return true;
}

FunctionQueue::Ended FunctionQueue::CameTooLate(FunctionId id, RunId run) {
  std::optional<WorkerId> worker;
  if (const auto it = Current(id, run); it != functions_.end()) {
    worker = *it->second.worker;
  } else if (const auto hung = superseded_.find(run);
             hung != superseded_.end() && hung->second.function == id && queued_.contains(id)) {
    worker = hung->second.worker;  // and no other one was free for it
  }
  if (worker.has_value()) {
    ++late_[id];
    ++refused_;
    Function& function = functions_.at(id);
    if (!function.Avoids(*worker)) function.avoid.push_back(*worker);
  }
  return RunEnded(id, run);
}

size_t FunctionQueue::NextRound() {
  size_t late = refused_ + contributed_.size();
  // What hung, and no other worker was free for.
  std::set<FunctionId> hung;
  for (const auto& [run, superseded] : superseded_) {
    const auto it = functions_.find(superseded.function);
    if (it != functions_.end() && Contributes(it->second) && queued_.contains(it->first) &&
        !decided_.contains(it->first))  // whose next step is queued by now
      hung.insert(it->first);
  }
  late += hung.size();
  for (const FunctionId id : hung) ++late_[id];
  for (const FunctionId id : contributed_) {
    ++late_[id];
    queued_.insert(id);
  }
  // What runs has read values that are not any more; servers refuse it.
  for (auto& [worker, state] : workers_) {
    for (const auto& [run, id] : std::map(state.runs)) {
      Function& function = functions_.at(id);
      if (!Contributes(function) || MU_BROKEN(late_results)) continue;
      ++late;
      ++late_[id];
      Supersede(id, function);
      queued_.insert(id);
      if (!function.Avoids(worker)) function.avoid.push_back(worker);
    }
  }
  for (auto& [run, superseded] : superseded_) {
    const auto it = functions_.find(superseded.function);
    if (!MU_BROKEN(late_results) && (it == functions_.end() || Contributes(it->second)))
      superseded.function = FunctionId();
  }
  ForgetRound();
  ++round_;
  return late;
}

// What it began in the middle of the open round would be too late as well.
void FunctionQueue::EndLate(FunctionId id, Worker* worker) {
  const auto it = functions_.find(id);
  const double median =
      it == functions_.end() ? 0 : times_.Median(it->second.work.fingerprint).value_or(0);
  if (time_ - round_began_ > kHardlyLate * median) worker->gave = true;
}

void FunctionQueue::ForgetRound() {
  contributed_.clear();
  decided_.clear();
  round_lease_.reset();
  refused_ = 0;
  round_began_ = time_;
  for (auto& [id, worker] : workers_) worker.gave = false;
}

}  // namespace mu
