// That synchronous rounds equal the large batch through a hundred losses of workers and ten of
// servers. With fewer of them: sync_rounds_test.cc.
#include <iostream>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/scoring_job.h"

namespace mu {
namespace {

using testing::ScoringJob;
using testing::TestCluster;
using testing::WaitWhile;

TEST(SyncRounds, EqualTheLargeBatchThroughAHundredAndTenLosses) {
  constexpr uint32_t kEpochs = 12;
  constexpr int kWorkers = 3, kWorkerKills = 100, kServerKills = 10;
  const std::vector<float> expected = ScoringJob::LargeBatch(kEpochs);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = kWorkers, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(c.SynchronousRounds({.replicas = ScoringJob::kReplicas}));
  Checkpointer checkpointer(
      &c, {.directory = cluster->directory() + "/checkpoints", .every = absl::InfiniteDuration()});
  MU_ASSERT_OK_AND_ASSIGN(const ScoringJob job,
                          ScoringJob::Create(*cluster, ScoringJob::kBatch, kEpochs));
  constexpr uint64_t kSteps = kEpochs * ScoringJob::kRecords / ScoringJob::kBatch;
  constexpr int kLosses = kWorkerKills + kServerKills;
  constexpr uint64_t kStepsALoss = kSteps / (kLosses + 1);
  const auto lost = [&](pb::Role role) {
    const RuntimeStats stats = c.Stats();
    const UnlistedFailures& unlisted = stats.unlisted_failures;
    uint64_t failures =
        role == pb::ROLE_WORKER ? unlisted.of_workers.failures : unlisted.of_servers.failures;
    for (const MemberFailure& failure : stats.failures) failures += failure.role == role ? 1 : 0;
    return failures;
  };
  // The end of a process that has not registered is no loss.
  const auto wait_for_member = [&](const char* role, int index) {
    const pid_t pid = cluster->process(role, index).pid();
    WaitWhile([&] { return !c.runtime().IsMember(pid); });
  };
  uint64_t scheduled = 0;
  const auto schedule = [&](uint64_t until) {
    for (; scheduled < until; ++scheduled) c.Schedule(job.step);
  };
  for (int loss = 0; loss < kLosses; ++loss) {
    // So much only, or a quick machine is done with the job before the last loss.
    const uint64_t at = kStepsALoss * static_cast<uint64_t>(loss);
    schedule(at + kStepsALoss);
    WaitWhile([&] { return c.Stats().steps < at + kStepsALoss / 4; });
    const int server = loss / (kLosses / kServerKills) % 2, turn = loss % (kLosses / kServerKills);
    if (turn == 0) {
      MU_ASSERT_OK(c.Checkpoint());
    }
    if (turn == 6) {
      wait_for_member("psserver", server);
      const uint64_t before = lost(pb::ROLE_PSSERVER);
      cluster->KillServer(server);
      MU_ASSERT_OK(cluster->StartServer(server));
      WaitWhile([&] { return lost(pb::ROLE_PSSERVER) == before; });
    } else {
      const int worker = loss % kWorkers;
      wait_for_member("worker", worker);
      const uint64_t before = lost(pb::ROLE_WORKER);
      cluster->KillWorker(worker);
      MU_ASSERT_OK(cluster->StartWorker(worker));
      WaitWhile([&] { return lost(pb::ROLE_WORKER) == before; });
    }
  }
  schedule(kSteps);
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> values, job.Values(c));
  testing::ExpectNear(values, expected, 1e-4f);
  EXPECT_EQ(lost(pb::ROLE_WORKER), uint64_t{kWorkerKills});
  EXPECT_EQ(lost(pb::ROLE_PSSERVER), uint64_t{kServerKills});
  const RuntimeStats stats = c.Stats();
  EXPECT_EQ(stats.samples, kEpochs * ScoringJob::kRecords);
  EXPECT_GT(stats.rounds.contributions, stats.steps) << "no server went back";
  std::cout << stats.rounds.committed << " rounds, " << stats.rounds.contributions << " steps in "
            << "them, of " << stats.steps << "\n";
}

}  // namespace
}  // namespace mu
