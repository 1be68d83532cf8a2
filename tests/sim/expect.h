// How tests run histories: the first seed that fails is told with its trace and how to replay it.
#pragma once

#include <string>

#include "gtest/gtest.h"
#include "tests/sim/history.h"

namespace mu::sim {

// Sanitizers are some 10 times slower: the same histories, but fewer of them.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr uint64_t kSlower = 10;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr uint64_t kSlower = 10;
#else
inline constexpr uint64_t kSlower = 1;
#endif
#else
inline constexpr uint64_t kSlower = 1;
#endif

inline std::string TailOf(const std::string& trace, size_t lines) {
  size_t at = trace.size();
  for (size_t i = 0; i <= lines && at != std::string::npos && at > 0; ++i)
    at = trace.rfind('\n', at - 1);
  return at == std::string::npos ? trace : trace.substr(at);
}

inline std::string Replay(const std::string& scenario, const Summary::Failure& failure) {
  const HistoryResult history = RunOne(failure.seed, *FindScenario(scenario), /*trace=*/true);
  return "seed " + std::to_string(failure.seed) + ": " + failure.problem + "\n" +
         history.description + "\nthe end of what happened:" + TailOf(history.trace, 60) +
         "\nreplay: build/tests/cluster_sim --scenario=" + scenario +
         " --seed=" + std::to_string(failure.seed) + " --trace\n";
}

// `histories` of the scenario pass, from seed 0 on.
inline void ExpectHolds(const std::string& scenario, uint64_t histories, int threads = 1) {
  ASSERT_NE(FindScenario(scenario), nullptr) << scenario;
  const Summary summary = RunMany(0, histories / kSlower, threads, *FindScenario(scenario));
  EXPECT_EQ(summary.histories, histories / kSlower);
  EXPECT_EQ(summary.failures, 0u) << (summary.failures > 0
                                          ? Replay(scenario, summary.first_failures[0])
                                          : "");
}

}  // namespace mu::sim
