#include "coordinator/core/worker_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mu {
namespace {

constexpr int kLate = std::numeric_limits<int>::min();
constexpr int kUnknown = kLate + 1;
constexpr int kClassesOfOctave = 8;
// A worker counts as slow from twice the time for a step of those it is compared with.
constexpr int kSlow = kClassesOfOctave;
// Shorter times are those of messages and threads more than of steps: all count as this one.
constexpr double kLeastSeconds = 0.002;
// It is compared with the slowest of the fastest quarter: of a thousand, some have been lucky.
constexpr size_t kQuarter = 4;

double Slowness(int of, std::optional<int> fast) {
  if (of == kLate || of == kUnknown || !fast.has_value() || of - *fast < kSlow) return 1;
  return std::exp2(static_cast<double>(of - *fast) / kClassesOfOctave);
}

}  // namespace

WorkerPool::Class WorkerPool::ClassOf(const State& state) {
  if (state.late) return kLate;
  if (!state.step_seconds.has_value()) return kUnknown;
  return static_cast<Class>(
      std::floor(kClassesOfOctave * std::log2(std::max(kLeastSeconds, *state.step_seconds))));
}

void WorkerPool::Set(WorkerId worker, const State& state) {
  const Place place = {ClassOf(state), state.in_flight};
  const auto [it, added] = places_.try_emplace(worker, place);
  if (!added) {
    if (it->second.of == place.of && it->second.in_flight == place.in_flight) return;
    Leave(worker, it->second);
    it->second = place;
  }
  Group& group = groups_[place.of];
  if (group.free.empty()) group.free.resize(most_in_flight_);
  ++group.workers;
  group.in_flight += place.in_flight;
  if (place.in_flight >= most_in_flight_) return;
  group.free[place.in_flight].insert(worker);
  ++with_room_;
}

void WorkerPool::Remove(WorkerId worker) {
  const auto it = places_.find(worker);
  if (it == places_.end()) return;
  Leave(worker, it->second);
  places_.erase(it);
}

void WorkerPool::Leave(WorkerId worker, const Place& place) {
  const auto it = groups_.find(place.of);
  Group& group = it->second;
  if (place.in_flight < most_in_flight_) {
    group.free[place.in_flight].erase(worker);
    --with_room_;
  }
  group.in_flight -= place.in_flight;
  if (--group.workers == 0) groups_.erase(it);
}

std::optional<WorkerId> WorkerPool::Pick(size_t queued, const std::vector<WorkerId>& avoid) const {
  if (with_room_ == 0) return std::nullopt;  // at high rates two of three calls find nobody
  struct Few {
    size_t workers = 0;
    size_t in_flight = 0;
  };
  std::map<Class, Few> avoided;
  size_t all_avoided = 0;
  for (const WorkerId worker : avoid) {
    const auto place = places_.find(worker);
    if (place == places_.end()) continue;
    ++all_avoided;
    ++avoided[place->second.of].workers;
    avoided[place->second.of].in_flight += place->second.in_flight;
  }
  // If none of them could reach the servers, the fault is not theirs.
  const bool avoids = all_avoided > 0 && all_avoided < places_.size();
  const auto left_of = [&](Class of, const Group& group) -> Few {
    const auto few = avoids ? avoided.find(of) : avoided.end();
    if (few == avoided.end()) return {group.workers, group.in_flight};
    return {group.workers - few->second.workers, group.in_flight - few->second.in_flight};
  };
  const auto first_of = [&](const std::set<WorkerId>& workers) {
    return std::find_if(workers.begin(), workers.end(), [&](WorkerId worker) {
      return !avoids || std::find(avoid.begin(), avoid.end(), worker) == avoid.end();
    });
  };
  // Nobody is slow in comparison with one that will not run it.
  size_t known = 0;
  for (auto it = groups_.upper_bound(kUnknown); it != groups_.end(); ++it)
    known += left_of(it->first, it->second).workers;
  std::optional<Class> fast;
  size_t faster = 0;
  for (auto it = groups_.upper_bound(kUnknown); it != groups_.end() && !fast.has_value(); ++it) {
    faster += left_of(it->first, it->second).workers;
    if (faster > 0 && kQuarter * faster >= known) fast = it->first;
  }

  std::optional<WorkerId> best;
  double best_end = 0, best_slowness = 1;  // in functions of a fast worker
  double all_load = static_cast<double>(queued), all_speed = 0;
  size_t best_in_flight = 0;
  for (const auto& [of, group] : groups_) {
    const double slowness = Slowness(of, fast);
    if (of != kLate) {
      const Few left = left_of(of, group);
      all_load += static_cast<double>(left.in_flight);
      all_speed += static_cast<double>(left.workers) / slowness;
    }
    for (size_t in_flight = 0; in_flight < most_in_flight_; ++in_flight) {
      const auto first = first_of(group.free[in_flight]);
      if (first == group.free[in_flight].end()) continue;
      const double end = static_cast<double>(in_flight + 1) * slowness;
      if (best.has_value() && (end > best_end || (end == best_end && *best < *first))) break;
      best = *first;
      best_end = end;
      best_slowness = slowness;
      best_in_flight = in_flight;
      break;  // who has more is no better
    }
  }
  if (!best.has_value() || best_slowness == 1) return best;
  // The others would have finished all that waits before a slow worker has: it gets nothing.
  const double others_load = all_load - static_cast<double>(best_in_flight);
  const double others_speed = all_speed - 1 / best_slowness;
  return others_speed > 0 && best_end > others_load / others_speed ? std::nullopt : best;
}

}  // namespace mu
