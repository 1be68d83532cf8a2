// The promises of tests/conformance that concern decisions only: a thousand seeds each, with the
// faults of that promise.
#include "tests/sim/expect.h"

namespace mu::sim {
namespace {

constexpr uint64_t kSeeds = 1000;

TEST(SimulatedConformance, WorkerKilledBetweenFunctions) {
  ExpectHolds("worker_killed_between_functions", kSeeds);
}
TEST(SimulatedConformance, WorkerKilledMidFunction) {
  ExpectHolds("worker_killed_mid_function", kSeeds);
}
TEST(SimulatedConformance, UpdateAppliedExactlyOnce) {
  ExpectHolds("update_applied_exactly_once", kSeeds);
}
TEST(SimulatedConformance, ExactlyOnceAcrossRestore) {
  ExpectHolds("exactly_once_across_restore", kSeeds);
}
TEST(SimulatedConformance, TwoWorkersKilled) { ExpectHolds("two_workers_killed", kSeeds); }
TEST(SimulatedConformance, AllWorkersKilled) { ExpectHolds("all_workers_killed", kSeeds); }
TEST(SimulatedConformance, WorkerKilledAgainAndAgain) {
  ExpectHolds("worker_killed_again_and_again", kSeeds);
}
TEST(SimulatedConformance, WorkerHangs) { ExpectHolds("worker_hangs", kSeeds); }
TEST(SimulatedConformance, WorkerDrains) { ExpectHolds("worker_drains", kSeeds); }
TEST(SimulatedConformance, WorkerJoinsLate) { ExpectHolds("worker_joins_late", kSeeds); }
TEST(SimulatedConformance, LeaseMovesToAnotherWorker) {
  ExpectHolds("lease_moves_to_another_worker", kSeeds);
}
TEST(SimulatedConformance, PsKilled) { ExpectHolds("ps_killed", kSeeds); }
TEST(SimulatedConformance, PsKilledAndOnlyItsShardGoesBack) {
  ExpectHolds("ps_killed_shard", kSeeds);
}
TEST(SimulatedConformance, EveryPsKilled) { ExpectHolds("every_ps_killed", kSeeds); }
TEST(SimulatedConformance, PsKilledWhileAWorkerRecovers) {
  ExpectHolds("ps_killed_while_a_worker_recovers", kSeeds);
}
TEST(SimulatedConformance, PsKilledWhileSaving) { ExpectHolds("ps_killed_while_saving", kSeeds); }
TEST(SimulatedConformance, PsKilledWhileRestoring) {
  ExpectHolds("ps_killed_while_restoring", kSeeds);
}
TEST(SimulatedConformance, PsKilledBeforeFirstCheckpoint) {
  ExpectHolds("ps_killed_before_first_checkpoint", kSeeds);
}
TEST(SimulatedConformance, PsDrains) { ExpectHolds("ps_drains", kSeeds); }
TEST(SimulatedConformance, PsCutOffFromCoordinator) {
  ExpectHolds("ps_cut_off_from_coordinator", kSeeds);
}
TEST(SimulatedConformance, PsHangs) { ExpectHolds("ps_hangs", kSeeds); }
TEST(SimulatedConformance, PsHangsInItsDisk) { ExpectHolds("ps_hangs_in_its_disk", kSeeds); }
TEST(SimulatedConformance, CoordinatorKilled) { ExpectHolds("coordinator_killed", kSeeds); }
TEST(SimulatedConformance, OldCoordinatorIsFenced) {
  ExpectHolds("old_coordinator_is_fenced", kSeeds);
}
TEST(SimulatedConformance, RestoreOnOtherPsCount) {
  ExpectHolds("restore_on_other_ps_count", kSeeds);
}
TEST(SimulatedConformance, PartitionWorker) { ExpectHolds("partition_worker", kSeeds); }
TEST(SimulatedConformance, PartitionPs) { ExpectHolds("partition_ps", kSeeds); }
TEST(SimulatedConformance, PartitionCoordinator) { ExpectHolds("partition_coordinator", kSeeds); }
TEST(SimulatedConformance, LostRequest) { ExpectHolds("lost_request", kSeeds); }
TEST(SimulatedConformance, LostReply) { ExpectHolds("lost_reply", kSeeds); }
TEST(SimulatedConformance, DuplicatedRequest) { ExpectHolds("duplicated_request", kSeeds); }
TEST(SimulatedConformance, UserErrors) { ExpectHolds("user_errors", kSeeds); }
TEST(SimulatedConformance, ServerWithoutItsDisk) { ExpectHolds("server_without_its_disk", kSeeds); }
TEST(SimulatedConformance, DiskFullOnSave) { ExpectHolds("disk_full_on_save", kSeeds); }
TEST(SimulatedConformance, TornShard) { ExpectHolds("torn_shard", kSeeds); }

}  // namespace
}  // namespace mu::sim
