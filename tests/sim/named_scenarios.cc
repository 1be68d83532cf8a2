// The scenarios that have names: all faults together, in all modes and in one, and one for each
// promise of tests/conformance that concerns decisions, with the faults of that promise and nothing
// else.
#include "tests/sim/history.h"

namespace mu::sim {
namespace {

// With these faults and no others, on a reliable network unless `limits` says more. `shows`: see
// NamedScenario.
NamedScenario Row(const char* name, std::vector<Fault> kinds, int least_strikes = 0,
                  int most_strikes = 0, uint32_t workers = 2, uint32_t servers = 2,
                  ScenarioLimits limits = {}, std::optional<Moment> shows = {}) {
  limits.kinds = std::move(kinds);
  limits.least_strikes = least_strikes;
  limits.most_strikes = most_strikes;
  if (limits.messages == ScenarioLimits::Messages::kDrawn)
    limits.messages = ScenarioLimits::Messages::kReliable;
  limits.workers = workers;
  limits.servers = servers;
  return {name, limits, shows};
}

}  // namespace

const std::vector<NamedScenario>& NamedScenarios() {
  using F = Fault;
  using M = ScenarioLimits::Messages;
  constexpr Time kOften = 20 * kMillisecond;
  constexpr Moment kSmallRound("small round ends epoch");
  constexpr Moment kPackedDies("packed contributor dies");
  constexpr Moment kErrorTold("user's error told");
  constexpr Moment kSecondError("second error dropped");
  constexpr Moment kWorkerLost("worker lost while cancelling");
  constexpr Moment kLedgerFull("ledger full");
  constexpr Moment kRestored("values restored");
  constexpr Moment kNoData("function without data");
  constexpr Moment kBadManifest("manifest unreadable");
  constexpr Moment kNotWritten("manifest not written");
  constexpr Moment kShut("folder is shut");
  constexpr Moment kRefused("another job refused");
  constexpr Moment kNoRoom("schedule waits for room");
  constexpr Moment kOutOfData("out of data");
  constexpr Moment kRoundsChange("rounds change");
  constexpr Moment kErrorInRound("error in a decided round");
  constexpr Moment kLeaveInRound("leave in a decided round");
  const ScenarioLimits often = {.checkpoint_every = kOften};
  const ScenarioLimits never = {.checkpoint_every = 100000 * kMillisecond, .most_kept = false};
  const ScenarioLimits often_lossy = {.messages = M::kLost, .checkpoint_every = kOften};
  const ScenarioLimits all = {.recover_shard = false};
  const ScenarioLimits full = {
      .checkpoint_every = kOften, .most_kept = true, .sync = false, .full_ledgers = true};
  const ScenarioLimits no_data = {.checkpoint_every = kOften, .per_worker = false, .no_data = true};
  const ScenarioLimits late = {.late = true};
  const ScenarioLimits ahead = {.recover_shard = false, .ahead = true};
  const ScenarioLimits sync = {.sync = true};
  const ScenarioLimits sync_often = {.checkpoint_every = kOften, .sync = true};
  const ScenarioLimits sync_lossy = {.messages = M::kReplyLost, .sync = true};
  // Without backups nothing else of training runs, and could fail, while a round is committed.
  const ScenarioLimits sync_backup = {.messages = M::kReplyLost, .sync = true, .backups = 1};
  const ScenarioLimits sync_of_four = {.sync = true, .replicas = 4, .backups = 0};
  const ScenarioLimits sync_packed = {.steps = 3, .sync = true, .replicas = 4, .backups = 0};
  // One is due whenever a commitment has failed, and the next one comes late enough for a server to
  // be lost before it.
  const ScenarioLimits sync_now_and_then = {.checkpoint_every = 60 * kMillisecond, .sync = true};
  const ScenarioLimits sync_slow_worker = {
      .slow_worker = true, .sync = true, .slow_record = false, .replicas = 2, .backups = 1};
  const ScenarioLimits sync_slow_record = {
      .slow_worker = false, .sync = true, .slow_record = true, .backups = 1};
  const ScenarioLimits sync_slow_checks = {.sync = true, .slow_checks = true};
  const ScenarioLimits groups = {.checkpoint_every = kOften, .groups = true};
  const ScenarioLimits sync_groups = {.checkpoint_every = kOften, .sync = true, .groups = true};
  static const std::vector<NamedScenario> scenarios = {
      {"everything", {}},
      {"async", {.late = false, .ahead = false, .sync = false}},
      {"late", {.late = true}},
      {"ahead", {.recover_shard = false, .ahead = true}},
      {"sync", {.sync = true}},
      {"groups", {.groups = true}},
      Row("undisturbed", {}),
      Row("each_record_once_per_epoch", {F::kKillWorker, F::kJoinWorker}, 0, 3, 0, 2),
      Row("per_worker_dataset_differs", {F::kKillWorker}, 0, 2, 0, 2, {.per_worker = true}),
      Row("per_worker_dataset_that_ends", {F::kKillWorker, F::kKillCoordinator}, 0, 2, 0, 2,
          {.per_worker = true, .sync = false, .data_ends = true}, kOutOfData),
      Row("functions_without_data",
          {F::kKillWorker, F::kKillServer, F::kKillCoordinator, F::kCancel}, 0, 5, 0, 2, no_data,
          kNoData),
      Row("epochs_started_by_the_user", {F::kKillWorker, F::kKillServer, F::kKillCoordinator}, 0, 4,
          0, 2, {.checkpoint_every = kOften, .starts_epochs = true}),
      Row("queue_bound_blocks_schedule", {F::kDrainWorker, F::kKillWorker}, 1, 4, 1, 2, {},
          kNoRoom),
      Row("user_errors", {F::kUserError, F::kCancel, F::kKillServer}, 3, 8, 2, 2, often_lossy,
          kErrorTold),
      Row("error_raised_once", {F::kUserError}, 1, 3, 2, 2, {}, kErrorTold),
      Row("error_type_names_the_failed_role", {F::kUserError, F::kKillWorker, F::kKillServer}, 2, 5,
          2, 2, {}, kErrorTold),
      Row("error_cancels_the_rest", {F::kUserError, F::kBadFunction}, 1, 1),
      Row("several_errors", {F::kUserError, F::kBadFunction, F::kGarbage}, 3, 6, 2, 2, {},
          kSecondError),
      Row("worker_killed_between_functions", {F::kKillWorker}, 1, 1, 1, 1),
      Row("worker_killed_mid_function", {F::kKillWorker}, 1, 1),
      Row("update_applied_exactly_once", {F::kKillWorker}, 6, 10, 2, 3),
      Row("exactly_once_across_restore", {F::kKillServer}, 3, 6, 2, 3, all),
      Row("two_workers_killed", {F::kKillWorker}, 2, 2),
      Row("all_workers_killed", {F::kKillWorker}, 4, 8, 4, 2),
      Row("worker_killed_again_and_again", {F::kKillWorker}, 8, 12),
      Row("worker_killed_while_installing", {F::kForget, F::kKillWorker}, 4, 8),
      Row("worker_killed_with_user_error", {F::kUserError, F::kKillWorker}, 2, 4, 2, 2, {},
          kWorkerLost),
      Row("worker_hangs", {F::kHangWorker}, 1, 3),
      Row("worker_drains", {F::kDrainWorker}, 1, 3),
      Row("worker_joins_late", {F::kJoinWorker, F::kDrainWorker}, 3, 6, 1, 2),
      Row("worker_leaves", {F::kDrainWorker}, 2, 4, 4, 2),
      Row("worker_replaced_at_new_address", {F::kReplaceWorker}, 1, 3),
      Row("node_without_data", {F::kNoData, F::kNoData, F::kKillCoordinator}, 2, 5, 3, 2),
      Row("slow_worker", {}, 0, 0, 4, 2, {.slow_worker = true}),
      Row("lease_moves_to_another_worker", {F::kKillWorker, F::kCutWorker, F::kHangWorker}, 1, 2),
      Row("hung_worker_holds_up_nobody", {F::kHangWorker}, 1, 1, 4, 2),
      Row("ps_killed_idle", {F::kKillServer}, 1, 1),
      Row("ps_killed_mid_push", {F::kKillServer}, 1, 3, 2, 2, all),
      Row("ps_killed_mid_pull", {F::kKillServer, F::kCutWorkerServer}, 1, 3),
      Row("ps_killed_shard", {F::kKillServer}, 1, 3, 2, 2, {.recover_shard = true}),
      Row("every_ps_killed", {F::kKillServer}, 4, 6),
      Row("ps_killed_while_a_worker_recovers", {F::kKillServer, F::kKillWorker}, 4, 6),
      Row("ps_killed_while_saving", {F::kKillServer, F::kDiskFull}, 2, 4, 2, 2, often),
      Row("ps_killed_while_restoring", {F::kKillServer}, 4, 8, 2, 3, often),
      Row("ps_killed_before_first_checkpoint", {F::kKillServer}, 1, 2, 2, 2, never),
      Row("ps_drains", {F::kDrainServer}, 1, 2),
      Row("ps_cut_off_from_coordinator", {F::kCutServer, F::kReplaceServer}, 1, 3),
      Row("ps_hangs", {F::kHangServer}, 1, 3),
      Row("restored_ps_equals_saved", {F::kKillServer, F::kCancel}, 2, 4, 2, 3, often),
      Row("server_without_its_disk", {F::kNoDisk, F::kNoDisk, F::kKillServer}, 3, 7, 2, 2, often),
      Row("ps_hangs_in_its_disk", {F::kHangDisk, F::kHangDisk, F::kKillServer}, 2, 5, 2, 2, often),
      Row("ledger_full", {F::kDiskFull}, 6, 12, 2, 2, full, kLedgerFull),
      Row("thousand_preemptions", {F::kKillWorker, F::kKillWorker, F::kKillServer}, 20, 24),
      Row("coordinator_killed", {F::kKillCoordinator}, 1, 3),
      Row("coordinator_paused", {F::kHangCoordinator}, 1, 3),
      Row("server_ignores_a_fence", {F::kDeafServer, F::kCancel}, 3, 6, 2, 2, often),
      Row("old_coordinator_is_fenced",
          {F::kSecondCoordinator, F::kHangCoordinator, F::kCutCoordinator}, 2, 4),
      Row("two_jobs_one_cluster", {F::kStranger, F::kKillWorker, F::kKillServer}, 2, 6, 2, 2, {},
          kRefused),
      Row("coordinator_ends_early", {F::kClose, F::kDrainServer, F::kDrainWorker}, 2, 5, 2, 2,
          often),
      Row("partition_worker", {F::kCutWorker, F::kCutWorkerServer}, 1, 3),
      Row("partition_ps", {F::kCutServer, F::kCutWorkerServer}, 1, 3),
      Row("partition_coordinator", {F::kCutCoordinator}, 1, 3),
      Row("lost_request", {}, 0, 0, 2, 2, {.messages = M::kLost}),
      Row("lost_reply", {}, 0, 0, 2, 2, {.messages = M::kReplyLost}),
      Row("duplicated_request", {}, 0, 0, 2, 2, {.messages = M::kRepeated}),
      Row("slow_network", {}, 0, 0, 2, 2, {.messages = M::kSlow}),
      Row("disk_full_on_save", {F::kDiskFull, F::kKillServer}, 2, 4, 2, 2, often),
      Row("torn_shard", {F::kTornFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2, often),
      Row("flipped_bit", {F::kBadFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2, often),
      Row("truncated_manifest", {F::kBadManifest, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2,
          often, kBadManifest),
      Row("manifests_that_fail_push_out_no_good_checkpoint",
          {F::kNoManifest, F::kNoManifest, F::kKillServer}, 3, 6, 2, 2, often, kNotWritten),
      Row("unwritable_directory", {F::kShutFolder, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2,
          often, kShut),
      Row("missing_shard", {F::kLostFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2, often),
      Row("restore_on_other_ps_count", {F::kResize}, 1, 3, 2, 0),
      Row("values_restored_midway", {F::kUserRestore, F::kKillServer, F::kKillCoordinator}, 2, 5, 2,
          2, often, kRestored),
      Row("restore_of_a_damaged_one", {F::kUserRestore, F::kUserRestore, F::kBadFile, F::kNoDisk},
          4, 8, 2, 2, often, kRestored),
      Row("checkpoint_renamed_while_it_is_loaded",
          {F::kRenamed, F::kUserRestore, F::kKillServer, F::kKillCoordinator}, 4, 8, 2, 2, often),
      Row("late_gradients",
          {F::kKillWorker, F::kKillServer, F::kHangWorker, F::kDrainWorker, F::kCutWorkerServer}, 0,
          4, 0, 0, late),
      Row("steps_ahead",
          {F::kKillWorker, F::kKillServer, F::kHangWorker, F::kDrainWorker, F::kKillCoordinator}, 0,
          4, 0, 0, ahead),
      Row("evaluated_beside", {}, 0, 0, 0, 0, groups),
      Row("evaluation_fails_apart", {F::kUserError, F::kKillWorker}, 1, 4, 2, 2, groups),
      Row("ps_killed_while_a_view_is_loaded", {F::kKillServer, F::kBadFile}, 3, 6, 2, 2, groups),
      Row("evaluated_beside_rounds", {F::kKillWorker, F::kKillServer}, 1, 4, 0, 2, sync_groups),
      Row("sync_undisturbed", {}, 0, 0, 0, 0, sync),
      Row("sync_worker_gives_several_and_dies", {F::kKillWorker}, 1, 4, 1, 2, sync_of_four),
      Row("sync_error_between_commits", {F::kUserError, F::kUserError, F::kCancel, F::kKillServer},
          3, 8, 3, 3, sync_backup, kErrorInRound),
      Row("sync_checkpoint_between_commits", {F::kCutServer, F::kDeafServer}, 4, 10, 1, 3,
          sync_now_and_then),
      Row("sync_leave_between_commits", {F::kDrainServer, F::kDeafServer}, 3, 6, 0, 3, sync_often,
          kLeaveInRound),
      Row("sync_small_round_at_the_end", {F::kKillWorker, F::kKillServer}, 0, 2, 0, 2, sync_of_four,
          kSmallRound),
      Row("sync_rounds_change",
          {F::kChangeRounds, F::kChangeRounds, F::kKillWorker, F::kKillServer, F::kKillCoordinator},
          3, 8, 0, 2, sync_often, kRoundsChange),
      Row("sync_ps_killed_while_a_round_is_skipped",
          {F::kChangeRounds, F::kChangeRounds, F::kKillServer}, 4, 10, 2, 3, sync_lossy,
          kRoundsChange),
      Row("sync_slow_worker", {}, 0, 0, 3, 2, sync_slow_worker),
      Row("sync_always_too_late", {}, 0, 0, 0, 2, sync_slow_record),
      Row("sync_slow_checks", {F::kKillWorker, F::kKillServer, F::kCancel}, 0, 3, 0, 0,
          sync_slow_checks),
      Row("sync_two_packed_and_one_dies", {F::kKillWorker}, 1, 1, 2, 2, sync_packed, kPackedDies),
      Row("sync_ps_killed", {F::kKillServer, F::kKillWorker}, 2, 6, 0, 0, sync_often),
  };
  return scenarios;
}

const ScenarioLimits* FindScenario(const std::string& name) {
  for (const NamedScenario& scenario : NamedScenarios()) {
    if (scenario.name == name) return &scenario.limits;
  }
  return nullptr;
}

}  // namespace mu::sim
