// The scenarios that have names: all faults together, and one for each promise of
// tests/conformance that concerns decisions only, with the faults of that promise and nothing else.
#include "tests/sim/history.h"

namespace mu::sim {
namespace {

ScenarioLimits Only(std::vector<Fault> kinds, int least, int most, uint32_t workers,
                    uint32_t servers) {
  ScenarioLimits limits;
  limits.kinds = std::move(kinds);
  limits.least_strikes = least;
  limits.most_strikes = most;
  limits.messages = ScenarioLimits::Messages::kReliable;
  limits.workers = workers;
  limits.servers = servers;
  return limits;
}

ScenarioLimits With(ScenarioLimits limits, ScenarioLimits::Messages messages) {
  limits.messages = messages;
  return limits;
}

ScenarioLimits Recovering(ScenarioLimits limits, ScenarioLimits::Recovery recovery) {
  limits.recovery = recovery;
  return limits;
}

ScenarioLimits CheckpointEvery(ScenarioLimits limits, Time every) {
  limits.checkpoint_every = every;
  return limits;
}

std::vector<NamedScenario> All() {
  using F = Fault;
  using M = ScenarioLimits::Messages;
  using R = ScenarioLimits::Recovery;
  constexpr Time kOften = 20 * kMillisecond;
  constexpr Time kNever = 100000 * kMillisecond;
  const ScenarioLimits none = Only({}, 0, 0, 2, 2);
  return {
      {"everything", {}},
      {"undisturbed", none},
      {"worker_killed_between_functions", Only({F::kKillWorker}, 1, 1, 1, 1)},
      {"worker_killed_mid_function", Only({F::kKillWorker}, 1, 1, 2, 2)},
      {"update_applied_exactly_once", Only({F::kKillWorker}, 6, 10, 2, 3)},
      {"exactly_once_across_restore", Recovering(Only({F::kKillServer}, 3, 6, 2, 3), R::kAll)},
      {"two_workers_killed", Only({F::kKillWorker}, 2, 2, 2, 2)},
      {"all_workers_killed", Only({F::kKillWorker}, 4, 8, 4, 2)},
      {"worker_killed_again_and_again", Only({F::kKillWorker}, 8, 12, 2, 2)},
      {"worker_hangs", Only({F::kHangWorker}, 1, 3, 2, 2)},
      {"worker_drains", Only({F::kDrainWorker}, 1, 3, 2, 2)},
      {"worker_joins_late", Only({F::kJoinWorker, F::kDrainWorker}, 3, 6, 1, 2)},
      {"lease_moves_to_another_worker",
       Only({F::kKillWorker, F::kCutWorker, F::kHangWorker}, 1, 2, 2, 2)},
      {"ps_killed", Only({F::kKillServer}, 1, 1, 2, 2)},
      {"ps_killed_shard", Recovering(Only({F::kKillServer}, 1, 3, 2, 2), R::kShard)},
      {"every_ps_killed", Only({F::kKillServer}, 4, 6, 2, 2)},
      {"ps_killed_while_a_worker_recovers",
       Only({F::kKillServer, F::kKillWorker, F::kKillWorker}, 4, 6, 2, 2)},
      {"ps_killed_while_saving",
       CheckpointEvery(Only({F::kKillServer, F::kDiskFull}, 2, 4, 2, 2), kOften)},
      {"ps_killed_while_restoring", CheckpointEvery(Only({F::kKillServer}, 4, 8, 2, 3), kOften)},
      {"ps_killed_before_first_checkpoint",
       CheckpointEvery(Only({F::kKillServer}, 1, 2, 2, 2), kNever)},
      {"ps_drains", Only({F::kDrainServer}, 1, 2, 2, 2)},
      {"ps_cut_off_from_coordinator", Only({F::kCutServer, F::kReplaceServer}, 1, 3, 2, 2)},
      {"ps_hangs", Only({F::kHangServer}, 1, 3, 2, 2)},
      {"coordinator_killed", Only({F::kKillCoordinator}, 1, 3, 2, 2)},
      {"old_coordinator_is_fenced",
       Only({F::kSecondCoordinator, F::kHangCoordinator, F::kCutCoordinator}, 2, 4, 2, 2)},
      {"restore_on_other_ps_count", Only({F::kResize}, 1, 3, 2, 0)},
      {"partition_worker", Only({F::kCutWorker, F::kCutWorkerServer}, 1, 3, 2, 2)},
      {"partition_ps", Only({F::kCutServer, F::kCutWorkerServer}, 1, 3, 2, 2)},
      {"partition_coordinator", Only({F::kCutCoordinator}, 1, 3, 2, 2)},
      {"lost_request", With(none, M::kLost)},
      {"lost_reply", With(none, M::kReplyLost)},
      {"duplicated_request", With(none, M::kRepeated)},
      {"user_errors",
       With(CheckpointEvery(Only({F::kUserError, F::kUserError, F::kKillServer}, 3, 8, 2, 2),
                            kOften),
            M::kLost)},
      {"disk_full_on_save",
       CheckpointEvery(Only({F::kDiskFull, F::kKillServer}, 2, 4, 2, 2), kOften)},
      {"server_without_its_disk",
       CheckpointEvery(Only({F::kNoDisk, F::kNoDisk, F::kKillServer}, 3, 7, 2, 2), kOften)},
      {"ps_hangs_in_its_disk",
       CheckpointEvery(Only({F::kHangDisk, F::kHangDisk, F::kKillServer}, 2, 5, 2, 2), kOften)},
      {"torn_shard",
       CheckpointEvery(Only({F::kBadFile, F::kKillServer, F::kKillCoordinator}, 2, 5, 2, 2),
                       kOften)},
  };
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
