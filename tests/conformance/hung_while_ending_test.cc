// Daemons that hang while an error, or the end of the coordinator, ends everything.
#include <atomic>
#include <thread>

#include "common/base/steady_now.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::Contains;
using testing::DefineLog;
using testing::HasCode;
using testing::InFlight;
using testing::Losses;
using testing::OnRequest;
using testing::StartCounting;
using testing::TestCluster;
using testing::WaitWhile;

// The server is lost and replaced while the fence still waits for it: what had finished is repeated
// in the new generation, and is not taken for what the error has cancelled.
TEST(Conformance, ErrorWhileAServerIsReplaced) {
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start({.workers = 2, .ps = 2, .member_timeout = absl::Seconds(1)}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 4000}));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(c, "log"));
  for (int i = 0; i < 50; ++i) c.Schedule(job.step(), {.steps = 10});
  MU_ASSERT_OK(c.Join());

  cluster->StopServer(0);
  const RemoteValue bad = c.Schedule(log, {.args = {{"x", -1}}});
  EXPECT_FALSE(bad.Fetch().ok());  // it needs no server
  WaitWhile([&] { return Losses(c, pb::ROLE_PSSERVER).empty(); });
  cluster->KillServer(0);
  MU_ASSERT_OK(cluster->StartServer(0));
  EXPECT_THAT(c.Join(), HasCode(absl::StatusCode::kInvalidArgument));
  for (int i = 0; i < 50; ++i) c.Schedule(job.step(), {.steps = 10});
  job.JoinAndCheck();
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), ::testing::IsEmpty());
}

// What it is told to end it does not end: nobody waits for that longer than for its heartbeats.
TEST(Conformance, CoordinatorDestroyedWhileAWorkerHangs) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .functions_in_flight = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log"));
  t.c().Schedule(t.count, {.steps = testing::kForever});
  WaitWhile([&] { return t.c().Stats().steps == 0; });
  const int busy = InFlight(t.c(), 0) > 0 ? 0 : 1;
  t.cluster->StopWorker(busy);
  const RemoteValue bad = t.c().Schedule(log, {.args = {{"x", -1}}});
  EXPECT_FALSE(bad.Fetch().ok());
  const absl::Time begin = SteadyNow();
  t.cluster->DestroyCoordinator();
  EXPECT_LT(SteadyNow() - begin, absl::Seconds(2));  // its timeout is ten
  t.cluster->ContinueWorker(busy);
}

// Counting the records of a new data set may take long; a server that is lost meanwhile is
// recovered all the same.
TEST(Conformance, PsKilledWhileDataIsCounted) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          TestCluster::Start({.ps = 2, .member_timeout = absl::Seconds(30)}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 400}));
  job.ScheduleAll(20);
  job.JoinAndCheck();
  MU_ASSERT_OK(checkpointer.TakeNow());

  const std::string file = cluster->directory() + "/other.csv";
  testing::WriteFile(file, testing::Numbers(0, 100));
  MU_ASSERT_OK_AND_ASSIGN(const Dataset other,
                          c.CreateDataset(Csv({file}).Id("id", 0, 0).Batch(4)));
  cluster->StopWorker(0);
  absl::StatusOr<uint64_t> batches;
  std::thread counting([&] { batches = c.BatchesInEpoch(other); });
  const pid_t killed = cluster->process("psserver", 1).pid();
  cluster->KillServer(1);
  c.runtime().DaemonDied(killed, "killed");  // so that nobody waits for its lease
  MU_EXPECT_OK(cluster->StartServer(1));
  WaitWhile([&] {
    const auto failures = c.Stats().failures;
    return failures.empty() || failures[0].recovered_seconds < 0;
  });
  job.JoinAndCheck();
  cluster->ContinueWorker(0);
  counting.join();
  EXPECT_THAT(batches, testing::IsOk());
}

// Without recovery, as `eval` and `predict` are: the loss of a server ends a load that waits for
// it.
TEST(Conformance, PsKilledWhileValuesAreLoaded) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.ps = 2}));
  const std::string checkpoint = t.cluster->directory() + "/saved";
  MU_ASSERT_OK(t.c().Save(checkpoint));
  for (int server = 0; server < 2; ++server) t.cluster->StopServer(server);
  absl::Status restored;
  std::atomic<bool> ended{false};
  std::thread loading([&] {
    restored = t.c().Restore(checkpoint).status();
    ended = true;
  });
  // Time for the calls to be under way.
  EXPECT_FALSE(testing::Eventually([&] { return ended.load(); }, absl::Milliseconds(300)));
  const pid_t killed = t.cluster->process("psserver", 1).pid();
  t.cluster->KillServer(1);
  t.c().runtime().DaemonDied(killed, "killed");
  loading.join();
  EXPECT_EQ(KindOf(restored), pb::ERROR_MACHINE) << restored;
  EXPECT_FALSE(restored.ok());
  t.cluster->ContinueServer(0);
}

}  // namespace
}  // namespace mu
