#include "tests/sim/history.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "tests/sim/cluster.h"

namespace mu::sim {
namespace {

constexpr size_t kFailuresTold = 10;
constexpr uint64_t kChunk = 64;  // seeds that a thread takes at a time

}  // namespace

HistoryResult RunOne(uint64_t seed, const ScenarioLimits& limits, bool trace) {
  const Scenario scenario = DrawScenario(seed, limits);
  auto cluster = std::make_unique<Cluster>();
  Outcome outcome = cluster->Run(seed, scenario, trace);
  return {outcome.ok,     outcome.problem, Describe(scenario), std::move(outcome.trace),
          outcome.events, outcome.ended};
}

Summary RunMany(uint64_t first, uint64_t seeds, int threads, const ScenarioLimits& limits,
                bool stop_early) {
  std::atomic<uint64_t> next{first};
  std::atomic<bool> stop{false};
  const uint64_t end = first + seeds;
  std::vector<Summary> parts(static_cast<size_t>(threads));
  const auto work = [&](Summary* part) {
    auto cluster = std::make_unique<Cluster>();
    while (!stop) {
      const uint64_t begin = next.fetch_add(kChunk);
      for (uint64_t seed = begin; seed < std::min(begin + kChunk, end) && !stop; ++seed) {
        const Outcome outcome = cluster->Run(seed, DrawScenario(seed, limits));
        ++part->histories;
        part->events += outcome.events;
        part->coverage.Add(outcome.seen);
        part->virtual_time += outcome.ended;
        if (outcome.ok) continue;
        ++part->failures;
        if (part->first_failures.size() < kFailuresTold)
          part->first_failures.push_back({seed, outcome.problem});
        if (stop_early) stop = true;
      }
      if (begin + kChunk >= end) return;
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < parts.size(); ++t) others.emplace_back(work, &parts[t]);
  work(&parts[0]);
  for (std::thread& other : others) other.join();
  Summary summary;
  for (const Summary& part : parts) {
    summary.histories += part.histories;
    summary.failures += part.failures;
    summary.events += part.events;
    summary.coverage.Add(part.coverage);
    summary.virtual_time += part.virtual_time;
    summary.first_failures.insert(summary.first_failures.end(), part.first_failures.begin(),
                                  part.first_failures.end());
  }
  std::sort(summary.first_failures.begin(), summary.first_failures.end(),
            [](const auto& a, const auto& b) { return a.seed < b.seed; });
  return summary;
}

}  // namespace mu::sim
