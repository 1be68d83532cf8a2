// Coordinators that die, and two at a time.
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "coordinator/cluster/checkpoint_directory.h"
#include "coordinator/cluster/job_epoch.h"
#include "coordinator/launch/cluster_options.h"
#include "coordinator/launch/launch.h"
#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::HasCode;
using ::testing::HasSubstr;
using testing::OnRequest;
using testing::StatusIs;
using testing::TestCluster;

// A program that schedules `functions` calls of 10 steps and says with each how many it has
// scheduled.
void ScheduleFrom(Coordinator& c, const CheckedJob& job, int first, int end) {
  for (int i = first; i < end; ++i) {
    c.Schedule(job.step(), {.steps = 10, .user_state = absl::StrCat(i + 1)});
  }
}

// The coordinator goes away in the middle, with calls queued and under way and results since the
// last checkpoint; the next one continues with the same daemons. (With SIGKILL:
// tests/integration/cli/restart_test.cc.)
TEST(Conformance, CoordinatorKilled) {
  constexpr CheckedJob::Size kSize = {.records = 24'000};
  const int functions = static_cast<int>(kSize.steps() / 10);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::vector<pid_t> daemons = cluster->pids();
  const std::string directory = cluster->directory() + "/checkpoints";
  {
    Coordinator& c = cluster->coordinator();
    Checkpointer checkpointer(&c, OnRequest(directory));
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
    ScheduleFrom(c, job, 0, functions / 2);
    job.WaitForSteps(200);
    MU_ASSERT_OK(checkpointer.TakeNow());
    ScheduleFrom(c, job, functions / 2, functions);
    job.WaitForSteps(700);
  }
  cluster->DestroyCoordinator();

  MU_ASSERT_OK(cluster->StartCoordinator());
  Coordinator& c = cluster->coordinator();
  EXPECT_EQ(c.runtime().options().epoch, CoordinatorEpoch(2));
  Checkpointer checkpointer(&c, OnRequest(directory));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c.Restore());
  EXPECT_GE(restored.manifest.position().steps(), 200u);
  EXPECT_LT(restored.manifest.position().steps(), kSize.steps() / 2);
  int scheduled = 0;
  ASSERT_TRUE(absl::SimpleAtoi(restored.user_state, &scheduled)) << restored.user_state;
  EXPECT_EQ(scheduled, functions / 2);
  ScheduleFrom(c, job, scheduled, functions);
  job.JoinAndCheck();
  for (const RemoteValue& value : restored.unfinished) MU_EXPECT_OK(value.Fetch());
  EXPECT_EQ(cluster->pids(), daemons);
  EXPECT_TRUE(c.Stats().failures.empty());
}

TEST(Conformance, CoordinatorKilledTwiceAndAServer) {
  constexpr CheckedJob::Size kSize = {.records = 8000, .epochs = 2};
  const int functions = static_cast<int>(kSize.steps() / 10);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string directory = cluster->directory() + "/checkpoints";
  for (int life = 0; life < 3; ++life) {
    SCOPED_TRACE(life);
    if (life > 0) {
      MU_ASSERT_OK(cluster->StartCoordinator());
    }
    Coordinator& c = cluster->coordinator();
    auto checkpointer = std::make_unique<Checkpointer>(
        &c, CheckpointerOptions{
                .directory = directory, .every = absl::InfiniteDuration(), .every_steps = 150});
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
    int scheduled = 0;
    if (life > 0) {
      MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c.Restore());
      ASSERT_TRUE(absl::SimpleAtoi(restored.user_state, &scheduled)) << restored.user_state;
    }
    ScheduleFrom(c, job, scheduled, functions);
    job.WaitForSteps(c.Stats().steps + 400);
    cluster->KillServer(life % 2);
    MU_ASSERT_OK(cluster->StartServer(life % 2));
    if (life == 2) {
      job.JoinAndCheck();
      break;
    }
    job.WaitForSteps(c.Stats().steps + 200);
    MU_ASSERT_OK(checkpointer->TakeNow());
    job.WaitForSteps(c.Stats().steps + 200);
    checkpointer.reset();  // before the coordinator that it uses
    cluster->DestroyCoordinator();
  }
}

// Of two checkpoints the newer one is damaged, in a file that is read after others have been
// loaded.
TEST(Conformance, CoordinatorContinuesFromAnOlderCheckpoint) {
  constexpr CheckedJob::Size kSize = {.records = 8000};
  const int functions = static_cast<int>(kSize.steps() / 10);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 3}));
  const std::string directory = cluster->directory() + "/checkpoints";
  std::string older, newer;
  {
    Coordinator& c = cluster->coordinator();
    Checkpointer checkpointer(&c, OnRequest(directory));
    MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
    ScheduleFrom(c, job, 0, functions);
    job.WaitForSteps(100);
    MU_ASSERT_OK_AND_ASSIGN(older, checkpointer.TakeNow());
    job.WaitForSteps(c.Stats().steps + 100);
    MU_ASSERT_OK_AND_ASSIGN(newer, checkpointer.TakeNow());
  }
  cluster->DestroyCoordinator();
  MU_ASSERT_OK_AND_ASSIGN(std::string bytes, ReadFile(newer + "/ps-2.safetensors"));
  bytes.back() ^= 1;
  MU_ASSERT_OK(WriteFileAtomic(newer + "/ps-2.safetensors", bytes));

  MU_ASSERT_OK(cluster->StartCoordinator());
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(directory));
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c.Restore());
  EXPECT_EQ(restored.directory, older);
  job.JoinAndCheck();
}

// Servers die while a new coordinator takes the others over and restores them.
TEST(Conformance, CoordinatorKilledAndAServerWhileItIsBack) {
  constexpr CheckedJob::Size kSize = {.records = 8000};
  constexpr int kLives = 5;
  const int functions = static_cast<int>(kSize.steps() / 10);
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  const std::string directory = cluster->directory() + "/checkpoints";
  for (int life = 0; life < kLives; ++life) {
    SCOPED_TRACE(life);
    if (life > 0) {
      MU_ASSERT_OK(cluster->StartCoordinator());
    }
    Coordinator& c = cluster->coordinator();
    auto checkpointer = std::make_unique<Checkpointer>(&c, OnRequest(directory));
    absl::StatusOr<CheckedJob> job;
    absl::StatusOr<RestoredJob> restored;
    std::thread program([&] {
      // Takes a while to restore
      MU_EXPECT_OK(c.CreateVariable(
          {.name = "ballast", .shape = Shape({8'000'000}), .partitioner = FixedShards{16}}));
      job = CheckedJob::Create(c, cluster->directory(), kSize);
      if (job.ok() && life > 0) restored = c.Restore();
    });
    if (life > 0) {
      cluster->KillServer(life % 2);
      MU_EXPECT_OK(cluster->StartServer(life % 2));
    }
    program.join();
    MU_ASSERT_OK(job);
    if (life == 0) {
      ScheduleFrom(c, *job, 0, functions);
    } else {
      MU_ASSERT_OK(restored);
    }
    if (life == kLives - 1) {
      job->JoinAndCheck();
      break;
    }
    job->WaitForSteps(c.Stats().steps + 50);
    MU_ASSERT_OK(checkpointer->TakeNow());
    checkpointer.reset();  // before the coordinator that it uses
    cluster->DestroyCoordinator();
  }
}

// A coordinator continues from a checkpoint that was taken under load, then a server goes back to
// it: the report says exactly what the server had acknowledged and lost, although some steps were
// in the checkpoint before their results came.
TEST(Conformance, RolledBackIsExactAfterARestart) {
  constexpr int kPartitions = 12, kFunctions = 1000;
  constexpr int64_t kSteps = 10 * kFunctions;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  CheckpointerOptions options = OnRequest(cluster->directory() + "/checkpoints");
  options.recovery = RecoveryMode::kShard;
  const auto create = [](Coordinator& c, Variable* steps) -> absl::StatusOr<Function> {
    MU_ASSIGN_OR_RETURN(*steps, c.CreateVariable({.name = "steps",
                                                  .shape = Shape({kPartitions}),
                                                  .dtype = kInt64,
                                                  .partitioner = FixedShards{kPartitions}}));
    const Tensor ones =
        Tensor::Of<int64_t>(Shape({kPartitions}), std::vector<int64_t>(kPartitions, 1));
    return c.DefineFunction("step",
                            [&](FunctionBuilder&) { AssignAdd(*steps, ConstantTensor(ones)); });
  };
  {
    Coordinator& c = cluster->coordinator();
    Checkpointer checkpointer(&c, options);
    Variable steps;
    MU_ASSERT_OK_AND_ASSIGN(const Function step, create(c, &steps));
    for (int i = 0; i < kFunctions; ++i) c.Schedule(step, {.steps = 10});
    while (c.Stats().steps < 200) std::this_thread::yield();
    MU_ASSERT_OK(checkpointer.TakeNow());
  }
  cluster->DestroyCoordinator();

  MU_ASSERT_OK(cluster->StartCoordinator());
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, options);
  Variable steps;
  MU_ASSERT_OK(create(c, &steps).status());
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c.Restore());
  EXPECT_EQ(restored.manifest.position().acknowledged_size(), 2);
  while (c.Stats().steps < restored.manifest.position().steps() + 100) std::this_thread::yield();
  cluster->KillServer(1);
  MU_ASSERT_OK(cluster->StartServer(1));
  MU_ASSERT_OK(c.Join());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor counted, c.Read(steps));
  int64_t missing = 0;
  for (const int64_t value : counted.flat<int64_t>()) missing += kSteps - value;
  ASSERT_EQ(c.Stats().failures.size(), 1u);
  EXPECT_EQ(c.Stats().failures[0].updates_rolled_back, missing);
}

// Nothing but the job's directory says that there is another one.
TEST(Conformance, OldCoordinatorCommitsNothing) {
  MU_ASSERT_OK_AND_ASSIGN(const TempDirectory directory, TempDirectory::Create("muster-epochs"));
  MU_ASSERT_OK_AND_ASSIGN(const auto older, InProcess({.job_dir = directory.path(),
                                                       .heartbeat = absl::Hours(1),
                                                       .member_timeout = absl::Hours(1)}));
  const std::string checkpoints = directory.path() + "/checkpoints";
  Checkpointer checkpointer(older.get(), OnRequest(checkpoints));
  MU_ASSERT_OK(older->CreateVariable({.name = "v", .shape = Shape({4})}));
  MU_ASSERT_OK(checkpointer.TakeNow());
  MU_ASSERT_OK_AND_ASSIGN(const CoordinatorEpoch epoch, ClaimEpoch(directory.path()));
  EXPECT_EQ(epoch, CoordinatorEpoch(2));
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kAborted));
  MU_ASSERT_OK_AND_ASSIGN(const auto complete, ListCheckpoints(checkpoints));
  EXPECT_EQ(complete.size(), 1u);
}

// The older of two coordinators of a job finds out, ends, and neither saves nor deletes anything.
TEST(Conformance, OldCoordinatorIsFenced) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& older = cluster->coordinator();
  const std::string directory = cluster->directory() + "/checkpoints";
  Checkpointer checkpointer(&older,
                            {.directory = directory, .every = absl::InfiniteDuration(), .keep = 1});
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 400'000}));
  job.ScheduleAll(1000);
  job.WaitForSteps(50);
  MU_ASSERT_OK(checkpointer.TakeNow());
  ClusterOptions options;
  options.job_dir = cluster->directory();
  options.listen = "127.0.0.1:0";
  MU_ASSERT_OK_AND_ASSIGN(auto newer, CreateCoordinator(options, NewGrpcTransport()));
  EXPECT_EQ(newer->runtime().options().epoch, CoordinatorEpoch(2));
  EXPECT_EQ(newer->runtime().options().job, older.runtime().options().job);
  const absl::Status end = older.Join();
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kAborted,
                            HasSubstr("a newer coordinator (epoch 2) has taken over")));
  EXPECT_EQ(KindOf(end), pb::ERROR_STALE) << "exit code 5";
  EXPECT_THAT(checkpointer.TakeNow(), HasCode(absl::StatusCode::kAborted));
  MU_ASSERT_OK_AND_ASSIGN(const auto complete, ListCheckpoints(directory));
  EXPECT_EQ(complete.size(), 1u);
}

// The same where the two do not see each other's files: the daemons that have heard of a newer
// epoch refuse the older one, and say so.
TEST(Conformance, OldCoordinatorsCallsAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 1}));
  Coordinator& older = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 400'000}));
  job.ScheduleAll(1000);
  job.WaitForSteps(50);
  pb::FenceRequest request;
  *request.mutable_context() = older.runtime().Context();
  request.mutable_context()->set_epoch(7);
  request.mutable_context()->set_low_water(0);
  const Member server = older.runtime().Servers().front();
  MU_ASSERT_OK(Call<pb::FenceReply>(*older.runtime().ChannelTo(server.address),
                                    "/muster.PsServer/Fence", request));
  EXPECT_THAT(older.Join(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("a newer coordinator (epoch 7)")));
}

}  // namespace
}  // namespace mu
