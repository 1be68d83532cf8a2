// Runs simulated histories by hand: cluster_sim --seeds=10000000 --threads=2; cluster_sim --seed=N
// --trace.
#include <chrono>
#include <iostream>
#include <optional>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_format.h"
#include "tests/sim/history.h"

ABSL_FLAG(uint64_t, seeds, 10000, "how many histories");
ABSL_FLAG(uint64_t, first, 0, "the first one's seed");
ABSL_FLAG(uint16_t, threads, 1, "that run histories");
ABSL_FLAG(std::optional<uint64_t>, seed, std::nullopt, "one history only: this one");
ABSL_FLAG(bool, trace, false, "of one history: tells event by event");
ABSL_FLAG(bool, coverage, false, "in how many histories each event, action and fault occurred");
ABSL_FLAG(std::string, scenario, "everything", "a name; '' lists all");
ABSL_FLAG(std::string, broken, "", "a protection that is taken away; 'list' lists all");

namespace mu::sim {
namespace {

template <typename Rows>
int List(const char* what, const Rows& rows) {
  std::cerr << "there are these " << what << ":\n";
  for (const auto& row : rows) std::cerr << "  " << row.name << "\n";
  return 2;
}

int One(uint64_t seed, const ScenarioLimits& limits) {
  const Outcome outcome = RunOne(seed, limits, absl::GetFlag(FLAGS_trace));
  std::cout << outcome.trace << Describe(DrawScenario(seed, limits))
            << absl::StreamFormat("\nseed %d: %s, %d events, %.3f s of virtual time\n", seed,
                                  outcome.ok() ? "passed" : outcome.problem, outcome.events,
                                  static_cast<double>(outcome.ended) / 1e9);
  return outcome.ok() ? 0 : 1;
}

int Many(const ScenarioLimits& limits) {
  const auto begin = std::chrono::steady_clock::now();
  const Summary summary = RunMany(absl::GetFlag(FLAGS_first), absl::GetFlag(FLAGS_seeds),
                                  absl::GetFlag(FLAGS_threads), limits);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto histories = static_cast<double>(summary.histories);
  std::cout << absl::StreamFormat(
      "%d histories in %.2f s (%.1f us each), %.0f events and %.3f s of virtual time each, %d "
      "failed\n",
      summary.histories, seconds, seconds * 1e6 / histories,
      static_cast<double>(summary.events) / histories,
      static_cast<double>(summary.virtual_time) / 1e9 / histories, summary.failures);
  if (absl::GetFlag(FLAGS_coverage)) std::cout << summary.coverage.Table();
  for (const auto& [failed, problem] : summary.first_failures) {
    std::cout << "seed " << failed << ": " << problem
              << "\n  replay: cluster_sim --scenario=" << absl::GetFlag(FLAGS_scenario)
              << " --seed=" << failed << " --trace\n";
  }
  return summary.failures == 0 ? 0 : 1;
}

int Main() {
  const ScenarioLimits* const found = FindScenario(absl::GetFlag(FLAGS_scenario));
  if (found == nullptr) return List("scenarios", NamedScenarios());
  ScenarioLimits limits = *found;
  bool known = absl::GetFlag(FLAGS_broken).empty();
  for (const Protection& protection : Protections()) {
    if (absl::GetFlag(FLAGS_broken) != protection.name) continue;
    protection.take_away(&limits.broken);
    known = true;
  }
  if (!known) return List("protections", Protections());
  const std::optional<uint64_t> seed = absl::GetFlag(FLAGS_seed);
  return seed.has_value() ? One(*seed, limits) : Many(limits);
}

}  // namespace
}  // namespace mu::sim

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("runs simulated histories, all that a seed says in virtual time");
  absl::ParseCommandLine(argc, argv);
  return mu::sim::Main();
}
