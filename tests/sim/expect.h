// How tests run histories: the first seed that fails is told with its trace and how to replay it.
#pragma once

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/sim/history.h"

namespace mu::sim {

// Sanitizers are some 10 times slower: the same histories, but fewer of them.
#ifndef __has_feature
#define __has_feature(feature) false
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || \
    __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
inline constexpr uint64_t kSlower = 10;
#else
inline constexpr uint64_t kSlower = 1;
#endif

// Of the first history that failed; "" if there is none.
inline std::string Replay(const std::string& scenario, const Summary& summary) {
  if (summary.failures == 0) return "";
  const uint64_t seed = summary.first_failures.begin()->first;
  const std::string trace = RunOne(seed, *FindScenario(scenario), /*trace=*/true).trace;
  constexpr size_t kTail = 6000;
  return absl::StrCat(
      "seed ", seed, ": ", summary.first_failures.begin()->second, "\n",
      Describe(DrawScenario(seed, *FindScenario(scenario))), "\nthe end of what happened:\n",
      trace.substr(trace.size() - std::min(trace.size(), kTail)),
      "\nreplay: build/tests/cluster_sim --scenario=", scenario, " --seed=", seed, " --trace\n");
}

// `histories` of the scenario pass, from seed 0 on, and one of a hundred sees what it is there for.
inline void ExpectHolds(const NamedScenario& scenario, uint64_t histories) {
  const Summary summary = RunMany(0, histories / kSlower, 1, scenario.limits);
  EXPECT_EQ(summary.histories, histories / kSlower);
  EXPECT_EQ(summary.failures, 0u) << Replay(scenario.name, summary);
  if (!scenario.shows.has_value()) return;
  EXPECT_GE(summary.coverage.Histories(*scenario.shows), histories / kSlower / 100)
      << "too few histories see: " << kMoments[scenario.shows->index()];
}

// The name of a row as a test's: ps_drains becomes PsDrains.
template <typename Row>
std::string TestName(const ::testing::TestParamInfo<Row>& row) {
  std::string name;
  bool up = true;
  for (const char c : std::string(row.param.name)) {
    if (c != '_') name += up ? absl::ascii_toupper(static_cast<unsigned char>(c)) : c;
    up = c == '_';
  }
  return name;
}

}  // namespace mu::sim
