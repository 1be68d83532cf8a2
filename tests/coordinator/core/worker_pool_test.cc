#include "coordinator/core/worker_pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using State = WorkerPool::State;

TEST(WorkerPool, TheLeastLoadedIsFirstAndOfEqualsTheSmallestId) {
  WorkerPool pool(2);
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt);
  for (const uint32_t worker : {3u, 1u, 2u}) pool.Set(WorkerId(worker), {});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(1));
  pool.Set(WorkerId(1), {.in_flight = 1});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(2));
  pool.Set(WorkerId(2), {.in_flight = 2});
  pool.Set(WorkerId(3), {.in_flight = 2});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(1));
  pool.Set(WorkerId(1), {.in_flight = 2});
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt);
  pool.Remove(WorkerId(2));
  pool.Remove(WorkerId(2));
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt);
  pool.Set(WorkerId(3), {});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(3)) << "removed once";
}

TEST(WorkerPool, WhoIsToBeAvoidedGetsItIfThereIsNobodyElse) {
  WorkerPool pool(1);
  pool.Set(WorkerId(0), {});
  EXPECT_EQ(pool.Pick(1, {WorkerId(0), WorkerId(7)}), WorkerId(0));
  pool.Set(WorkerId(1), {.in_flight = 1});
  EXPECT_EQ(pool.Pick(1, {WorkerId(0)}), std::nullopt) << "another one will be free";
  EXPECT_EQ(pool.Pick(1, {WorkerId(0), WorkerId(1)}), WorkerId(0));
}

TEST(WorkerPool, ALateWorkerMakesNobodySlow) {
  WorkerPool pool(2);
  pool.Set(WorkerId(0), {.in_flight = 2, .step_seconds = 0.001, .late = true});
  pool.Set(WorkerId(1), {.in_flight = 0, .step_seconds = 1});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(1));
  pool.Set(WorkerId(0), {.in_flight = 2, .step_seconds = 0.001});
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt) << "the fast one is done sooner";
}

TEST(WorkerPool, MessagesThatTakeLongerMakeNobodySlow) {
  WorkerPool pool(2);
  pool.Set(WorkerId(0), {.in_flight = 2, .step_seconds = 0.0003});
  pool.Set(WorkerId(1), {.in_flight = 0, .step_seconds = 0.0019});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(1));
  pool.Set(WorkerId(1), {.in_flight = 0, .step_seconds = 0.1});
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt) << "but a step does";
}

TEST(WorkerPool, OneThatWasLuckyMakesNobodySlow) {
  WorkerPool pool(2);
  pool.Set(WorkerId(0), {.in_flight = 2, .step_seconds = 0.02});
  for (uint32_t worker = 1; worker < 8; ++worker)
    pool.Set(WorkerId(worker), {.in_flight = 1, .step_seconds = 0.1});
  pool.Set(WorkerId(7), {.in_flight = 0, .step_seconds = 0.1});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(7));
  // Now a quarter of them is fast, and has all that waits done sooner.
  pool.Set(WorkerId(1), {.in_flight = 0, .step_seconds = 0.02});
  for (uint32_t worker = 2; worker < 8; ++worker)
    pool.Set(WorkerId(worker), {.in_flight = 0, .step_seconds = 0.1});
  EXPECT_EQ(pool.Pick(1, {}), WorkerId(1));
  pool.Set(WorkerId(1), {.in_flight = 2, .step_seconds = 0.02});
  EXPECT_EQ(pool.Pick(1, {}), std::nullopt);
}

// The same choice with a look at everybody.
std::optional<WorkerId> PickByScan(const std::map<WorkerId, State>& workers, size_t most,
                                   size_t queued, const std::vector<WorkerId>& avoid) {
  const auto is_avoided = [&](WorkerId id) {
    return std::find(avoid.begin(), avoid.end(), id) != avoid.end();
  };
  const bool avoids = std::any_of(workers.begin(), workers.end(),
                                  [&](const auto& worker) { return !is_avoided(worker.first); });
  const auto octave = [](double seconds) {
    return std::floor(8 * std::log2(std::max(0.002, seconds)));
  };
  std::vector<double> known;
  for (const auto& [id, worker] : workers) {
    if ((avoids && is_avoided(id)) || worker.late || !worker.step_seconds.has_value()) continue;
    known.push_back(octave(*worker.step_seconds));
  }
  std::sort(known.begin(), known.end());
  const double fast =
      known.empty() ? std::numeric_limits<double>::infinity() : known[(known.size() + 3) / 4 - 1];
  std::optional<WorkerId> best;
  double best_end = 0, best_slowness = 1, load = static_cast<double>(queued), speed = 0;
  size_t best_in_flight = 0;
  for (const auto& [id, worker] : workers) {
    if (avoids && is_avoided(id)) continue;
    const double behind =
        worker.late || !worker.step_seconds.has_value() ? 0 : octave(*worker.step_seconds) - fast;
    const double slowness = behind < 8 ? 1 : std::exp2(behind / 8);
    if (!worker.late) {
      load += static_cast<double>(worker.in_flight);
      speed += 1 / slowness;
    }
    const double end = static_cast<double>(worker.in_flight + 1) * slowness;
    if (worker.in_flight >= most || (best.has_value() && end >= best_end)) continue;
    best = id;
    best_end = end;
    best_slowness = slowness;
    best_in_flight = worker.in_flight;
  }
  if (!best.has_value() || best_slowness == 1) return best;
  const double others_load = load - static_cast<double>(best_in_flight);
  const double others_speed = speed - 1 / best_slowness;
  return others_speed > 1e-9 && best_end > others_load / others_speed ? std::nullopt : best;
}

TEST(WorkerPool, ChoosesAsALookAtEverybodyDoes) {
  constexpr size_t kMost = 3;
  int chosen = 0, waited = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix random(seed);
    WorkerPool pool(kMost);
    std::map<WorkerId, State> workers;
    const uint64_t paces = 1 + random.Below(5);
    for (int change = 0; change < 100; ++change) {
      const WorkerId id(static_cast<uint32_t>(random.Below(12)));
      if (random.Below(8) == 0) {
        workers.erase(id);
        pool.Remove(id);
      } else {
        State state = {.in_flight = random.Below(kMost + 1), .late = random.Below(10) == 0};
        // Of one pace at least, so that many are equals.
        if (random.Below(4) > 0)
          state.step_seconds = 0.001 * std::pow(3.0, static_cast<double>(random.Below(paces)));
        workers[id] = state;
        pool.Set(id, state);
      }
      std::vector<WorkerId> avoid;
      for (uint64_t i = random.Below(6); i < 3; ++i)
        avoid.push_back(WorkerId(static_cast<uint32_t>(random.Below(12))));
      std::sort(avoid.begin(), avoid.end());
      avoid.erase(std::unique(avoid.begin(), avoid.end()), avoid.end());
      const size_t queued = 1 + random.Below(20);
      const auto picked = pool.Pick(queued, avoid);
      ASSERT_EQ(picked, PickByScan(workers, kMost, queued, avoid))
          << "seed " << seed << ", change " << change;
      ++(picked.has_value() ? chosen : waited);
    }
  }
  EXPECT_GT(chosen, 1000);
  EXPECT_GT(waited, 100);
}

}  // namespace
}  // namespace mu
