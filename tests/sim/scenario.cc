#include "tests/sim/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu::sim {

const char* ToString(Fault fault) {
  static constexpr const char* kNames[] = {"kill worker",
                                           "kill server",
                                           "kill coordinator",
                                           "hang worker",
                                           "hang server",
                                           "hang coordinator",
                                           "drain worker",
                                           "drain server",
                                           "join worker",
                                           "replace server",
                                           "second coordinator",
                                           "cut worker",
                                           "cut server",
                                           "cut coordinator",
                                           "cut worker from server",
                                           "user error",
                                           "disk full",
                                           "bad file",
                                           "resize",
                                           "no disk",
                                           "forget",
                                           "hang disk"};
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == kFaultKinds);
  return kNames[static_cast<int>(fault)];
}

Scenario DrawScenario(uint64_t seed, const ScenarioLimits& limits) {
  SplitMix random(HashCombine(seed, 0x73696d));
  const auto between = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random.Below(high - low + 1));
  };
  Scenario s;
  s.workers = limits.workers > 0 ? limits.workers : between(1, kMaxWorkers);
  s.servers = limits.servers > 0 ? limits.servers : between(1, kMaxServers);
  s.partitions = between(kMaxServers, kMaxPartitions);
  s.in_flight = between(1, 3);
  s.epochs = between(1, 2);
  s.batches = between(10, s.epochs == 1 ? 40 : 25);
  s.steps = between(1, kMaxSteps);
  if (random.Below(5) == 0) s.slow_worker = static_cast<int>(random.Below(s.workers));
  s.recover_shard = random.Below(3) == 0;
  if (limits.recovery != ScenarioLimits::Recovery::kDrawn) {
    s.recover_shard = limits.recovery == ScenarioLimits::Recovery::kShard;
  }
  s.told_of_deaths = random.Below(2) == 0;
  s.checkpoint_every =
      limits.checkpoint_every > 0 ? limits.checkpoint_every : between(30, 200) * kMillisecond;
  using Messages = ScenarioLimits::Messages;
  if (limits.messages == Messages::kDrawn && random.Below(2) == 0) {
    s.per_mille_lost = between(0, 30);
    s.per_mille_reply_lost = between(0, 30);
    s.per_mille_repeated = between(0, 30);
    s.per_mille_slow = between(0, 50);
  }
  if (limits.messages == Messages::kLost) s.per_mille_lost = between(10, 100);
  if (limits.messages == Messages::kReplyLost) s.per_mille_reply_lost = between(10, 100);
  if (limits.messages == Messages::kRepeated) s.per_mille_repeated = between(50, 300);
  const uint32_t strikes = between(static_cast<uint32_t>(limits.least_strikes),
                                   static_cast<uint32_t>(limits.most_strikes));
  for (uint32_t i = 0; i < strikes; ++i) {
    const Fault fault = limits.kinds.empty() ? static_cast<Fault>(random.Below(kFaultKinds))
                                             : limits.kinds[random.Below(limits.kinds.size())];
    // Mostly while there is work: a step takes some 5 ms.
    const uint32_t busy = 30 + 8 * s.batches * s.epochs / s.workers;
    s.strikes.push_back({between(2, busy) * kMillisecond + between(0, 999) * kMicrosecond, fault});
  }
  std::stable_sort(s.strikes.begin(), s.strikes.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  s.broken = limits.broken;
  return s;
}

std::string Describe(const Scenario& s) {
  std::string text = absl::StrCat(
      s.workers, " workers, ", s.servers, " servers, ", s.partitions, " partitions, ", s.in_flight,
      " in flight, ", s.batches, " batches, ", s.epochs, " epochs, functions of ", s.steps,
      ", recovery ", s.recover_shard ? "shard" : "all",
      s.slow_worker >= 0 ? absl::StrCat(", worker ", s.slow_worker, " slow") : "",
      s.told_of_deaths ? ", deaths told" : "", ", checkpoint every ",
      s.checkpoint_every / kMillisecond, " ms, calls lost ", s.per_mille_lost, ", replies lost ",
      s.per_mille_reply_lost, ", calls repeated ", s.per_mille_repeated, ", slow ",
      s.per_mille_slow, " per mille");
  for (const auto& strike : s.strikes) {
    absl::StrAppend(&text, "; ", ToString(strike.fault), " at ", strike.at / kMillisecond, " ms");
  }
  return text;
}

}  // namespace mu::sim
