// A hundred thousand histories; ten million by hand: build/tests/cluster_sim --seeds=10000000
// --threads=2.
//
// MUSTER_SIM_FIRST_SEED says which: tests/run.sh takes it from the commit, so that each commit
// looks at others and whoever has it can look at the same.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

// Histories that failed once. A seed stays the same history as long as neither the simulation nor a
// decision changes; where one did, it is one more history.
struct FailedOnce {
  const char* scenario;
  uint64_t seed;
};
constexpr FailedOnce kFailedOnce[] = {
    {"everything", 269},        {"everything", 433},     {"everything", 1776},
    {"everything", 2751},       {"everything", 2792},    {"everything", 8147},
    {"everything", 8584},       {"everything", 8595},    {"everything", 9469},
    {"everything", 9509},       {"everything", 10666},   {"everything", 12112},
    {"everything", 13894},      {"everything", 49738},   {"everything", 485101},
    {"everything", 2595450},    {"everything", 3310318}, {"everything", 3512884},
    {"everything", 4270},       {"everything", 6190},    {"everything", 7135072},
    {"everything", 7563658},    {"everything", 7705899}, {"everything", 20690843},
    {"everything", 1000688854}, {"everything", 454},     {"everything", 1917}};

// A push is partly inherited if only some of the cuts that its partitions come from contain it.
// Functions of several steps train in rounds in one of twenty histories, and in one of ten of these
// a worker is killed, at any time. A second error meets the first within some milliseconds, and a
// server that leaves a round that is being committed. A push is refused at the gate for what has
// changed since it was checked.
constexpr absl::string_view kRare[] = {"push partly inherited", "packed contributor dies",
                                       "second error dropped", "leave in a decided round",
                                       "push refused at gate"};
// In some histories of 100,000, or in none. A worker answers a cancellation when no push of it is
// on its way, so a fence waits only for those of workers that cannot be reached; tests of the
// server's core hold what happens then. A round is skipped when rounds were switched off and on
// again, in some milliseconds; CoreRoundsChange holds that. The simulated program is never stopped
// while it waits for servers; CoreTasks holds what happens to its tasks then.
constexpr absl::string_view kPerhapsNever[] = {"fence waits", "server lost in an empty commit",
                                               "TasksGivenUp"};

template <size_t n>
bool IsOneOf(const absl::string_view (&names)[n], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

TEST(Simulation, HundredThousandHistories) {
  constexpr uint64_t kHistories = 100'000;
  // Each of these in at least a thousandth of all histories.
  constexpr uint64_t kLeast = kHistories / kSlower / 1000;
  uint64_t first = 0;
  if (const char* const text = std::getenv("MUSTER_SIM_FIRST_SEED"); text != nullptr && *text)
    ASSERT_TRUE(absl::SimpleAtoi(text, &first)) << text;
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Summary summary =
      RunMany(first, kHistories / kSlower, threads, *FindScenario("everything"));
  EXPECT_EQ(summary.failures, 0u) << Replay("everything", summary);
  std::cout << "seeds " << first << " to " << first + summary.histories - 1 << ", "
            << summary.events / summary.histories << " events each\n"
            << summary.coverage.Table();
  for (const Coverage::Row& row : summary.coverage.Rows()) {
    if (IsOneOf(kPerhapsNever, row.name)) continue;
    EXPECT_GE(row.histories, IsOneOf(kRare, row.name) ? kLeast / 100 : kLeast)
        << row.kind << " " << row.name;
  }
}

TEST(Simulation, HistoriesThatFailedOnce) {
  for (const auto& [scenario, seed] : kFailedOnce) {
    const ScenarioLimits* const limits = FindScenario(scenario);
    ASSERT_NE(limits, nullptr) << "there is no scenario " << scenario;
    const Outcome result = RunOne(seed, *limits);
    EXPECT_TRUE(result.ok()) << scenario << ", seed " << seed << ": " << result.problem;
  }
}

}  // namespace
}  // namespace mu::sim
