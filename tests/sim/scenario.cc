#include "tests/sim/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu::sim {
namespace {

// In the order of Fault.
constexpr const char* kFaults[] = {
    "kill worker",      "hang worker",     "drain worker",    "replace worker",
    "cut worker",       "cut pair",        "no data",         "garbage",
    "forget",           "kill server",     "hang server",     "drain server",
    "replace server",   "cut server",      "deaf server",     "kill coordinator",
    "hang coordinator", "2nd coordinator", "cut coordinator", "cancel",
    "bad function",     "join worker",     "disk full",       "bad file",
    "lost file",        "resize",          "no disk",         "hang disk",
    "user error",       "user restores",   "no manifest",     "bad manifest",
    "torn file",        "shut folder",     "stranger",        "close",
    "change rounds",    "renamed"};
static_assert(std::size(kFaults) == kFaultKinds);

}  // namespace

const char* ToString(Fault fault) { return kFaults[static_cast<int>(fault)]; }

const std::vector<Protection>& Protections() {
  using B = Broken;
  static const std::vector<Protection> protections = {
      {"deduplication", [](B* b) { b->server.deduplication = true; }},
      {"inheritance", [](B* b) { b->server.inheritance = true; }},
      {"checksums", [](B* b) { b->server.checksums = true; }, "flipped_bit"},
      {"fencing", [](B* b) { b->server.fencing = b->worker.fencing = true; }},
      {"leases", [](B* b) { b->server.leases = true; }},
      {"late_fences", [](B* b) { b->server.late_fences = true; }, "user_errors"},
      {"old_generations", [](B* b) { b->server.old_generations = true; }},
      {"requeueing", [](B* b) { b->coordinator.requeueing = true; }},
      {"low_water_high", [](B* b) { b->coordinator.low_water_high = true; }},
      {"low_water_stuck", [](B* b) { b->coordinator.low_water_stuck = true; }},
      {"commit_after_fence", [](B* b) { b->coordinator.commit_after_fence = true; }, "user_errors"},
      {"cancel_below_mark", [](B* b) { b->coordinator.cancel_below_mark = true; }, "user_errors"},
      {"late_position", [](B* b) { b->coordinator.late_position = true; }},
      {"resumed_untrained", [](B* b) { b->coordinator.resumed_untrained = true; }},
      {"not_reinstalled", [](B* b) { b->coordinator.not_reinstalled = true; }},
      {"mixed_load", [](B* b) { b->coordinator.mixed_load = true; }, "flipped_bit"},
      {"renamed_load", [](B* b) { b->coordinator.renamed_load = true; },
       "checkpoint_renamed_while_it_is_loaded"},
      {"resumed_early", [](B* b) { b->worker.resumed_early = true; }},
      {"resumed_late", [](B* b) { b->worker.resumed_late = true; }},
      {"old_routing", [](B* b) { b->worker.old_routing = true; }},
      {"results_kept", [](B* b) { b->worker.results_kept = true; }},
      {"generation_of_now", [](B* b) { b->worker.generation_of_now = true; }},
      {"early_cancel", [](B* b) { b->worker.early_cancel = true; }, "user_errors"},
      {"old_connection", [](B* b) { b->worker.old_connection = true; }, "everything", 30000},
      {"repeats_taken", [](B* b) { b->stream.repeats_taken = true; }},
      {"not_sent_again", [](B* b) { b->stream.not_sent_again = true; }},
      {"confirmed_early", [](B* b) { b->stream.confirmed_early = true; }},
      {"late_install", [](B* b) { b->worker.late_install = true; }},
      {"lateness", [](B* b) { b->server.lateness = true; }, "late_gradients"},
      {"far_ahead", [](B* b) { b->coordinator.far_ahead = true; }, "steps_ahead"},
      {"round_repeats", [](B* b) { b->server.round_repeats = true; }, "sync"},
      {"late_contributions",
       [](B* b) { b->server.late_contributions = b->coordinator.late_results = true; }, "sync"},
      {"kept_contributions", [](B* b) { b->server.kept_contributions = true; }, "sync"},
      {"half_committed", [](B* b) { b->coordinator.half_committed = true; }, "sync"},
      {"never_due", [](B* b) { b->coordinator.never_due = true; }, "sync_always_too_late"},
      {"cut_in_a_round", [](B* b) { b->coordinator.cut_in_a_round = true; },
       "sync_checkpoint_between_commits"},
      {"fence_in_a_round", [](B* b) { b->coordinator.fence_in_a_round = true; },
       "sync_error_between_commits"},
      {"leave_in_a_round", [](B* b) { b->coordinator.leave_in_a_round = true; },
       "sync_leave_between_commits"},
      {"views_kept", [](B* b) { b->coordinator.views_kept = true; },
       "ps_killed_while_a_view_is_loaded"},
      {"early_views", [](B* b) { b->coordinator.early_views = true; }, "groups"},
      {"groups_fail_together", [](B* b) { b->coordinator.groups_fail_together = true; }, "groups"},
      {"groups_lost", [](B* b) { b->coordinator.groups_lost = true; }, "groups"},
      {"checked_twice", [](B* b) { b->server.checked_twice = true; }, "sync_slow_checks"},
      {"refusals", [](B* b) { b->server.refusals = true; }, "late_gradients"}};
  return protections;
}

Scenario DrawScenario(uint64_t seed, const ScenarioLimits& limits) {
  SplitMix random(HashCombine(seed, 0x73696d));
  const auto between = [&](uint32_t low, uint32_t high) {
    return low + static_cast<uint32_t>(random.Below(high - low + 1));
  };
  const auto one_of = [&](uint64_t n, std::optional<bool> limit) {
    const bool drawn = random.Below(n) == 0;
    return limit.value_or(drawn);
  };
  Scenario s;
  s.workers = limits.workers > 0 ? limits.workers : between(1, kMaxWorkers);
  s.servers = limits.servers > 0 ? limits.servers : between(1, kMaxServers);
  s.partitions = between(kMaxServers, kMaxPartitions);
  s.in_flight = between(1, 3);
  s.epochs = between(1, 2);
  s.batches = between(10, s.epochs == 1 ? 40 : 25);
  s.steps = between(1, kMaxSteps);
  if (one_of(5, limits.slow_worker)) s.slow_worker = static_cast<int>(random.Below(s.workers));
  s.recover_shard = one_of(3, limits.recover_shard);
  s.per_worker = one_of(6, limits.per_worker);
  if (one_of(6, limits.most_kept)) s.most_kept = between(2000, 8000);
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
  if (limits.messages == Messages::kSlow) s.per_mille_slow = between(100, 500);
  const uint32_t strikes = between(static_cast<uint32_t>(limits.least_strikes),
                                   static_cast<uint32_t>(limits.most_strikes));
  for (uint32_t i = 0; i < strikes; ++i) {
    const Fault fault = limits.kinds.empty() ? static_cast<Fault>(random.Below(kOldFaultKinds))
                                             : limits.kinds[random.Below(limits.kinds.size())];
    // Mostly while there is work: a step takes some 5 ms.
    const uint32_t busy = 30 + 8 * s.batches * s.epochs / s.workers;
    s.strikes.push_back({between(2, busy) * kMillisecond + between(0, 999) * kMicrosecond, fault});
  }
  // Of its own numbers, as what follows: histories without it are what they were before.
  SplitMix young(HashCombine(seed, 0x796f756e67));
  if (limits.kinds.empty() && limits.most_strikes > 0 && young.Below(4) == 0) {
    const uint64_t busy_us = 1000 * (30 + 8 * s.batches * s.epochs / s.workers);
    for (uint64_t left = 1 + young.Below(3); left > 0; --left) {
      const auto at = static_cast<Time>(2000 + young.Below(busy_us)) * kMicrosecond;
      const uint64_t kind = kOldFaultKinds + young.Below(kFaultKinds - kOldFaultKinds);
      s.strikes.push_back({at, static_cast<Fault>(kind)});
    }
  }
  std::stable_sort(s.strikes.begin(), s.strikes.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
  SplitMix bound(HashCombine(seed, 0x6c617465));
  if (limits.late.value_or(bound.Below(4) == 0))
    s.most_late = static_cast<uint32_t>(bound.Below(2 * kMaxWorkers));
  if (limits.ahead.value_or(bound.Below(4) == 0))
    s.most_ahead = static_cast<uint32_t>(bound.Below(3 * kMaxSteps));
  SplitMix slow(HashCombine(seed, 0x736c6f77));
  s.slow_replacements = slow.Below(8) == 0;
  s.keep = static_cast<uint32_t>(1 + slow.Below(3));
  SplitMix data(HashCombine(seed, 0x64617461));
  if (limits.kinds.empty() && data.Below(15) == 0)
    s.data_comes_at = static_cast<Time>(1 + data.Below(150)) * kMillisecond;
  SplitMix sync(HashCombine(seed, 0x73796e63));
  const bool another_mode = limits.recover_shard.value_or(false) ||
                            limits.per_worker.value_or(false) || limits.late.value_or(false) ||
                            limits.ahead.value_or(false);
  if (limits.sync.value_or(sync.Below(4) == 0) && !another_mode) {
    s.replicas = static_cast<uint32_t>(1 + sync.Below(4));
    s.backups = static_cast<uint32_t>(sync.Below(3));
    if (limits.replicas > 0) s.replicas = limits.replicas;
    s.backups = limits.backups.value_or(s.backups);
    if (sync.Below(4) > 0) s.steps = 1;
    if (limits.slow_record.value_or(sync.Below(4) == 0))
      s.slow_record = static_cast<int>(sync.Below(s.batches * s.epochs));
    s.recover_shard = s.per_worker = false;
    s.most_late.reset();
  }
  SplitMix checks(HashCombine(seed, 0x636865636b));
  const bool slow_checks = limits.messages == Messages::kDrawn && checks.Below(4) == 0;
  if (s.replicas > 0 && limits.slow_checks.value_or(slow_checks))
    s.per_mille_slow_checks = static_cast<uint32_t>(20 + checks.Below(281));
  if (limits.steps > 0) s.steps = limits.steps;
  SplitMix groups(HashCombine(seed, 0x67726f757073));
  if (limits.groups.value_or(limits.kinds.empty() && groups.Below(4) == 0))
    s.evaluations = static_cast<uint32_t>(1 + groups.Below(4));
  SplitMix ledger(HashCombine(seed, 0x6c6564676572));
  const bool full_ledgers =
      limits.kinds.empty() && limits.workers == 0 && s.replicas == 0 && ledger.Below(8) == 0;
  if (limits.full_ledgers.value_or(full_ledgers))
    s.most_remembered = std::max(4u, s.batches * s.epochs / s.steps / 3);
  SplitMix other(HashCombine(seed, 0x6f74686572));
  const bool no_data = !s.per_worker && limits.kinds.empty() && other.Below(6) == 0;
  if (limits.no_data.value_or(no_data))
    s.per_mille_no_data = static_cast<uint32_t>(50 + other.Below(251));
  SplitMix plans(HashCombine(seed, 0x706c616e73));
  const bool starts_epochs = limits.kinds.empty() && plans.Below(4) == 0;
  s.starts_epochs = s.epochs > 1 && !s.per_worker && limits.starts_epochs.value_or(starts_epochs);
  if (limits.kinds.empty() && limits.most_strikes > 0 && plans.Below(8) == 0)
    s.per_mille_no_plan = static_cast<uint32_t>(100 + plans.Below(301));
  SplitMix ends(HashCombine(seed, 0x656e6473));
  const bool data_ends = limits.kinds.empty() && s.epochs == 2 && ends.Below(2) == 0;
  if (s.per_worker && limits.data_ends.value_or(data_ends)) {
    s.epochs = 2;  // more than one worker has
    s.own_epochs = 1;
  }
  s.broken = limits.broken;
  return s;
}

std::string Describe(const Scenario& s) {
  std::string text = absl::StrCat(
      s.workers, " workers, ", s.servers, " servers, ", s.partitions, " partitions, ", s.in_flight,
      " in flight, ", s.batches, " batches, ", s.epochs, " epochs, functions of ", s.steps,
      ", recovery ", s.recover_shard ? "shard" : "all",
      s.per_worker ? ", every worker reads by itself" : "",
      s.own_epochs > 0 ? absl::StrCat(", ", s.own_epochs, " times") : "",
      s.starts_epochs ? ", the user starts epochs" : "",
      s.per_mille_no_plan > 0 ? absl::StrCat(", no plan ", s.per_mille_no_plan, " per mille") : "",
      s.most_kept > 0 ? absl::StrCat(", at most ", s.most_kept, " bytes kept") : "",
      s.most_remembered > 0 ? absl::StrCat(", servers remember ", s.most_remembered) : "",
      s.most_late.has_value() ? absl::StrCat(", gradients late by ", *s.most_late, " at most") : "",
      s.most_ahead.has_value() ? absl::StrCat(", steps ahead by ", *s.most_ahead, " at most") : "",
      s.replicas > 0 ? absl::StrCat(", rounds of ", s.replicas, " and ", s.backups) : "",
      s.evaluations > 0 ? absl::StrCat(", ", s.evaluations, " evaluations") : "",
      s.per_mille_no_data > 0 ? absl::StrCat(", without data ", s.per_mille_no_data, " per mille")
                              : "",
      s.slow_record >= 0 ? absl::StrCat(", record ", s.slow_record, " slow") : "",
      s.slow_worker >= 0 ? absl::StrCat(", worker ", s.slow_worker, " slow") : "",
      s.data_comes_at > 0 ? absl::StrCat(", data after ", s.data_comes_at / kMillisecond, " ms")
                          : "",
      s.told_of_deaths ? ", deaths told" : "", s.slow_replacements ? ", replacements slow" : "",
      ", checkpoint every ", s.checkpoint_every / kMillisecond, " ms (", s.keep,
      " are kept), calls lost ", s.per_mille_lost, ", replies lost ", s.per_mille_reply_lost,
      ", calls repeated ", s.per_mille_repeated, ", slow ", s.per_mille_slow, ", slow checks ",
      s.per_mille_slow_checks, " per mille");
  for (const auto& strike : s.strikes) {
    absl::StrAppend(&text, "; ", ToString(strike.fault), " at ", strike.at / kMillisecond, " ms");
  }
  return text;
}

}  // namespace mu::sim
