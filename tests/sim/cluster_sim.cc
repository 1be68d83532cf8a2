// Runs simulated histories by hand: cluster_sim --seeds=10000000 --threads=2; cluster_sim --seed=N
// --trace.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "tests/sim/history.h"

namespace {

constexpr char kUsage[] =
    "usage: cluster_sim [--seeds=N] [--first=N] [--threads=N] [--scenario=NAME] [--seed=N "
    "[--trace]] [--coverage]\n"
    "  --broken=PROTECTION   without deduplication, fencing, leases, requeueing, low_water_high, "
    "low_water_stuck, commit_after_fence, "
    "cancel_below_mark, late_position, not_reinstalled, mixed_load, late_fences, old_generations, "
    "resumed_early, resumed_late, old_routing,\n"
    "    results_kept, generation_of_now, early_cancel, any_order, late_install, inheritance or "
    "checksums\n";

bool Break(absl::string_view what, mu::sim::Broken* broken) {
  const std::pair<absl::string_view, bool*> switches[] = {
      {"deduplication", &broken->deduplication},
      {"fencing", &broken->fencing},
      {"leases", &broken->leases},
      {"requeueing", &broken->requeueing},
      {"low_water_high", &broken->low_water_high},
      {"low_water_stuck", &broken->low_water_stuck},
      {"commit_after_fence", &broken->commit_after_fence},
      {"cancel_below_mark", &broken->cancel_below_mark},
      {"late_position", &broken->late_position},
      {"not_reinstalled", &broken->not_reinstalled},
      {"mixed_load", &broken->mixed_load},
      {"late_fences", &broken->late_fences},
      {"old_generations", &broken->old_generations},
      {"resumed_early", &broken->resumed_early},
      {"resumed_late", &broken->resumed_late},
      {"old_routing", &broken->old_routing},
      {"results_kept", &broken->results_kept},
      {"generation_of_now", &broken->generation_of_now},
      {"early_cancel", &broken->early_cancel},
      {"any_order", &broken->any_order},
      {"late_install", &broken->late_install},
      {"inheritance", &broken->inheritance},
      {"checksums", &broken->checksums}};
  for (const auto& [name, protection] : switches) {
    if (what == name) return *protection = true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seeds = 10000, first = 0, threads = 1, seed = 0;
  bool one = false, trace = false, coverage = false;
  std::string name = "everything";
  mu::sim::Broken broken;
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    bool good = true;
    if (arg == "--trace") {
      trace = true;
    } else if (arg == "--coverage") {
      coverage = true;
    } else if (absl::ConsumePrefix(&arg, "--seeds=")) {
      good = absl::SimpleAtoi(arg, &seeds);
    } else if (absl::ConsumePrefix(&arg, "--first=")) {
      good = absl::SimpleAtoi(arg, &first);
    } else if (absl::ConsumePrefix(&arg, "--threads=")) {
      good = absl::SimpleAtoi(arg, &threads) && threads > 0;
    } else if (absl::ConsumePrefix(&arg, "--seed=")) {
      good = one = absl::SimpleAtoi(arg, &seed);
    } else if (absl::ConsumePrefix(&arg, "--scenario=")) {
      name = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--broken=")) {
      good = Break(arg, &broken);
    } else {
      good = false;
    }
    if (!good) {
      std::fprintf(stderr, "%s", kUsage);
      return 2;
    }
  }
  const mu::sim::ScenarioLimits* found = mu::sim::FindScenario(name);
  if (found == nullptr) {
    std::fprintf(stderr, "there is no scenario '%s'; there are:\n", name.c_str());
    for (const auto& scenario : mu::sim::NamedScenarios())
      std::fprintf(stderr, "  %s\n", scenario.name.c_str());
    return 2;
  }
  mu::sim::ScenarioLimits limits = *found;
  limits.broken = broken;
  if (one) {
    const auto result = mu::sim::RunOne(seed, limits, trace);
    std::printf("%s%s\nseed %llu: %s, %llu events, %.3f s of virtual time\n", result.trace.c_str(),
                result.description.c_str(), static_cast<unsigned long long>(seed),
                result.ok ? "passed" : result.problem.c_str(),
                static_cast<unsigned long long>(result.events),
                static_cast<double>(result.ended) / 1e9);
    return result.ok ? 0 : 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto summary = mu::sim::RunMany(first, seeds, static_cast<int>(threads), limits);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%llu histories in %.2f s (%.1f us each), %.0f events and %.3f s of virtual time each, %llu "
      "failed\n",
      static_cast<unsigned long long>(summary.histories), seconds,
      seconds * 1e6 / static_cast<double>(summary.histories),
      static_cast<double>(summary.events) / static_cast<double>(summary.histories),
      static_cast<double>(summary.virtual_time) / 1e9 / static_cast<double>(summary.histories),
      static_cast<unsigned long long>(summary.failures));
  if (coverage) {
    for (const auto& row : summary.coverage.Rows()) {
      std::printf("%-14s %-24s %10llu histories\n", row.kind.c_str(), row.name.c_str(),
                  static_cast<unsigned long long>(row.histories));
    }
    for (const auto& [unreachable, why] : mu::sim::Coverage::Unreachable())
      std::printf("not simulated: %s, since %s\n", unreachable.c_str(), why.c_str());
  }
  for (const auto& failure : summary.first_failures) {
    std::printf("seed %llu: %s\n  replay: cluster_sim --scenario=%s --seed=%llu --trace\n",
                static_cast<unsigned long long>(failure.seed), failure.problem.c_str(),
                name.c_str(), static_cast<unsigned long long>(failure.seed));
  }
  return summary.failures == 0 ? 0 : 1;
}
