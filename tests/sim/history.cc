#include "tests/sim/history.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/mutex.h"

namespace mu::sim {

void Summary::Add(uint64_t seed, const Outcome& outcome) {
  constexpr size_t kFailuresTold = 10;
  ++histories;
  events += outcome.events;
  virtual_time += outcome.ended;
  coverage.Add(outcome.seen);
  if (outcome.ok()) return;
  ++failures;
  if (first_failures.size() < kFailuresTold) first_failures[seed] = outcome.problem;
}

Outcome RunOne(uint64_t seed, const ScenarioLimits& limits, bool trace) {
  return std::make_unique<Cluster>(seed, DrawScenario(seed, limits), trace)->Run();
}

Summary RunMany(uint64_t first, uint64_t seeds, int threads, const ScenarioLimits& limits,
                bool stop_early) {
  std::atomic<uint64_t> next{first};
  std::atomic<bool> stop{false};
  Summary summary;
  Mutex mutex;
  const auto work = [&] {
    for (uint64_t seed = next++; seed < first + seeds && !stop; seed = next++) {
      const Outcome outcome = RunOne(seed, limits);
      MutexLock lock(&mutex);
      summary.Add(seed, outcome);
      if (stop_early && !outcome.ok()) stop = true;
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return summary;
}

}  // namespace mu::sim
