#include "tests/sim/history.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "common/base/mutex.h"

namespace mu::sim {
namespace {

constexpr size_t kFailuresTold = 10;
constexpr uint64_t kChunk = 64;  // seeds that a thread takes at a time

}  // namespace

void Summary::Add(uint64_t seed, const Outcome& outcome) {
  ++histories;
  events += outcome.events;
  virtual_time += outcome.ended;
  coverage.Add(outcome.seen);
  if (outcome.ok) return;
  ++failures;
  if (first_failures.size() < kFailuresTold) first_failures[seed] = outcome.problem;
}

void Summary::Add(const Summary& other) {
  histories += other.histories;
  failures += other.failures;
  events += other.events;
  virtual_time += other.virtual_time;
  coverage.Add(other.coverage);
  first_failures.insert(other.first_failures.begin(), other.first_failures.end());
}

Outcome RunOne(uint64_t seed, const ScenarioLimits& limits, bool trace) {
  return std::make_unique<Cluster>()->Run(seed, DrawScenario(seed, limits), trace);
}

Summary RunMany(uint64_t first, uint64_t seeds, int threads, const ScenarioLimits& limits,
                bool stop_early) {
  std::atomic<uint64_t> next{first};
  std::atomic<bool> stop{false};
  const uint64_t end = first + seeds;
  Summary summary;
  Mutex mutex;
  const auto work = [&] {
    auto cluster = std::make_unique<Cluster>();
    Summary part;
    while (!stop) {
      const uint64_t begin = next.fetch_add(kChunk);
      for (uint64_t seed = begin; seed < std::min(begin + kChunk, end) && !stop; ++seed) {
        part.Add(seed, cluster->Run(seed, DrawScenario(seed, limits)));
        if (stop_early && part.failures > 0) stop = true;
      }
      if (begin + kChunk >= end) break;
    }
    MutexLock lock(&mutex);
    summary.Add(part);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return summary;
}

}  // namespace mu::sim
