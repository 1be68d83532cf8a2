// The scenarios that have names: all faults together, and one for each promise of
// tests/conformance that concerns decisions, with the faults of that promise and nothing else.
#include "tests/sim/history.h"

namespace mu::sim {
namespace {

struct Row {
  const char* name;
  std::vector<Fault> kinds;
  int least_strikes = 0, most_strikes = 0;
  uint32_t workers = 2, servers = 2;
  ScenarioLimits others = {};
};

std::vector<NamedScenario> All() {
  using F = Fault;
  using M = ScenarioLimits::Messages;
  constexpr Time kOften = 20 * kMillisecond;
  const ScenarioLimits often = {.checkpoint_every = kOften};
  const ScenarioLimits never = {.checkpoint_every = 100000 * kMillisecond, .most_kept = false};
  const ScenarioLimits often_lossy = {.messages = M::kLost, .checkpoint_every = kOften};
  const ScenarioLimits all = {.recover_shard = false};
  const ScenarioLimits full = {.checkpoint_every = kOften, .most_kept = true};
  const Row rows[] = {
      {"undisturbed", {}},
      {"each_record_once_per_epoch", {F::kKillWorker, F::kJoinWorker}, 0, 3, 0, 2},
      {"per_worker_dataset_differs", {F::kKillWorker}, 0, 2, 0, 2, {.per_worker = true}},
      {"user_errors", {F::kUserError, F::kUserError, F::kKillServer}, 3, 8, 2, 2, often_lossy},
      {"error_cancels_the_rest", {F::kUserError, F::kBadFunction}, 1, 1},
      {"several_errors", {F::kUserError, F::kBadFunction, F::kGarbage}, 3, 6},
      {"worker_killed_between_functions", {F::kKillWorker}, 1, 1, 1, 1},
      {"worker_killed_mid_function", {F::kKillWorker}, 1, 1},
      {"update_applied_exactly_once", {F::kKillWorker}, 6, 10, 2, 3},
      {"exactly_once_across_restore", {F::kKillServer}, 3, 6, 2, 3, all},
      {"two_workers_killed", {F::kKillWorker}, 2, 2},
      {"all_workers_killed", {F::kKillWorker}, 4, 8, 4, 2},
      {"worker_killed_again_and_again", {F::kKillWorker}, 8, 12},
      {"worker_killed_while_installing", {F::kForget, F::kKillWorker}, 4, 8},
      {"worker_killed_with_user_error", {F::kUserError, F::kKillWorker}, 2, 4},
      {"worker_hangs", {F::kHangWorker}, 1, 3},
      {"worker_drains", {F::kDrainWorker}, 1, 3},
      {"worker_joins_late", {F::kJoinWorker, F::kDrainWorker}, 3, 6, 1, 2},
      {"worker_leaves", {F::kDrainWorker}, 2, 4, 4, 2},
      {"worker_replaced_at_new_address", {F::kReplaceWorker}, 1, 3},
      {"slow_worker", {}, 0, 0, 4, 2, {.slow_worker = true}},
      {"lease_moves_to_another_worker", {F::kKillWorker, F::kCutWorker, F::kHangWorker}, 1, 2},
      {"hung_worker_holds_up_nobody", {F::kHangWorker}, 1, 1, 4, 2},
      {"ps_killed_idle", {F::kKillServer}, 1, 1},
      {"ps_killed_mid_push", {F::kKillServer}, 1, 3, 2, 2, all},
      {"ps_killed_mid_pull", {F::kKillServer, F::kCutWorkerServer}, 1, 3},
      {"ps_killed_shard", {F::kKillServer}, 1, 3, 2, 2, {.recover_shard = true}},
      {"every_ps_killed", {F::kKillServer}, 4, 6},
      {"ps_killed_while_a_worker_recovers", {F::kKillServer, F::kKillWorker}, 4, 6},
      {"ps_killed_while_saving", {F::kKillServer, F::kDiskFull}, 2, 4, 2, 2, often},
      {"ps_killed_while_restoring", {F::kKillServer}, 4, 8, 2, 3, often},
      {"ps_killed_before_first_checkpoint", {F::kKillServer}, 1, 2, 2, 2, never},
      {"ps_drains", {F::kDrainServer}, 1, 2},
      {"ps_cut_off_from_coordinator", {F::kCutServer, F::kReplaceServer}, 1, 3},
      {"ps_hangs", {F::kHangServer}, 1, 3},
      {"restored_ps_equals_saved", {F::kKillServer, F::kUserError}, 2, 4, 2, 3, often},
      {"server_without_its_disk", {F::kNoDisk, F::kNoDisk, F::kKillServer}, 3, 7, 2, 2, often},
      {"ps_hangs_in_its_disk", {F::kHangDisk, F::kHangDisk, F::kKillServer}, 2, 5, 2, 2, often},
      {"ledger_full", {F::kDiskFull}, 6, 12, 2, 2, full},
      {"thousand_preemptions", {F::kKillWorker, F::kKillWorker, F::kKillServer}, 20, 24},
      {"coordinator_killed", {F::kKillCoordinator}, 1, 3},
      {"coordinator_paused", {F::kHangCoordinator}, 1, 3},
      {"server_ignores_a_fence", {F::kDeafServer, F::kUserError}, 3, 6, 2, 2, often},
      {"old_coordinator_is_fenced",
       {F::kSecondCoordinator, F::kHangCoordinator, F::kCutCoordinator},
       2,
       4},
      {"partition_worker", {F::kCutWorker, F::kCutWorkerServer}, 1, 3},
      {"partition_ps", {F::kCutServer, F::kCutWorkerServer}, 1, 3},
      {"partition_coordinator", {F::kCutCoordinator}, 1, 3},
      {"lost_request", {}, 0, 0, 2, 2, {.messages = M::kLost}},
      {"lost_reply", {}, 0, 0, 2, 2, {.messages = M::kReplyLost}},
      {"duplicated_request", {}, 0, 0, 2, 2, {.messages = M::kRepeated}},
      {"slow_network", {}, 0, 0, 2, 2, {.messages = M::kSlow}},
      {"disk_full_on_save", {F::kDiskFull, F::kKillServer}, 2, 4, 2, 2, often},
      {"torn_shard", {F::kBadFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2, often},
      {"missing_shard", {F::kLostFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2, often},
      {"restore_on_other_ps_count", {F::kResize}, 1, 3, 2, 0},
  };
  std::vector<NamedScenario> scenarios = {{"everything", {}}};
  for (const Row& row : rows) {
    ScenarioLimits limits = row.others;
    limits.kinds = row.kinds;
    limits.least_strikes = row.least_strikes;
    limits.most_strikes = row.most_strikes;
    if (limits.messages == M::kDrawn) limits.messages = M::kReliable;
    limits.workers = row.workers;
    limits.servers = row.servers;
    scenarios.push_back({row.name, limits});
  }
  return scenarios;
}

}  // namespace

const std::vector<NamedScenario>& NamedScenarios() {
  static const auto* const scenarios = new std::vector<NamedScenario>(All());
  return *scenarios;
}

const ScenarioLimits* FindScenario(const std::string& name) {
  for (const NamedScenario& scenario : NamedScenarios()) {
    if (scenario.name == name) return &scenario.limits;
  }
  return nullptr;
}

}  // namespace mu::sim
