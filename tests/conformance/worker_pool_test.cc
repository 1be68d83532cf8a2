// A pool of workers that changes: late ones, leavers, replacements, slow and hanging ones.
#include <csignal>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using ::testing::Contains;
using ::testing::Each;
using testing::InFlight;
using testing::Losses;
using testing::RepeatedPushes;
using testing::StepsByWorker;
using testing::TestCluster;
using testing::WaitForWorkers;
using testing::WaitWhile;

TEST(Conformance, WorkerHangs) {
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start({.workers = 2, .ps = 2, .member_timeout = absl::Seconds(2)}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 10}));
  job.ScheduleAll(50);
  job.WaitForSteps(200);
  cluster->StopWorker(0);
  EXPECT_GT(InFlight(c, 0), 0u) << "it has something that others must do now";
  WaitWhile([&] { return Losses(c, pb::ROLE_WORKER).empty(); });
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), Contains("silent"));
  job.WaitForSteps(c.Stats().steps + 500);  // by the other one
  cluster->ContinueWorker(0);
  WaitForWorkers(c, 2);  // it is welcome back
  job.JoinAndCheck();
  c.Schedule(job.step(), {.steps = 1});  // nothing is left of the data, but it answers
  MU_EXPECT_OK(c.Join());
}

// Its heartbeats go on, but a step of it does not: it ends itself.
TEST(Conformance, WorkerStuckInAStep) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK(cluster->StartWorker(1, {"--slow_down=1e6", "--stuck_timeout=1"}));
  WaitForWorkers(c, 2);
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 4}));
  job.ScheduleAll(20);
  const auto exit = cluster->process("worker", 1).WaitFor(absl::Seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->code, 4) << exit->ToString();
  EXPECT_THAT(
      cluster->LogOf("worker", 1),
      ::testing::ContainsRegex("step [0-9]+ of function 'checked_step' is computing for 1s"));
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), 1u);
}

// Its calls have deadlines, and are made again.
TEST(Conformance, WorkerThatWaitsForAServerIsNotStuck) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster,
                          TestCluster::Start({.member_timeout = absl::Seconds(30),
                                              .worker_flags = {"--stuck_timeout=1"}}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.records = 8000}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  cluster->StopServer(0);
  EXPECT_FALSE(
      testing::Eventually([&] { return !Losses(c, pb::ROLE_WORKER).empty(); }, absl::Seconds(3)));
  cluster->ContinueServer(0);
  job.JoinAndCheck();
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), ::testing::IsEmpty());
}

TEST(Conformance, WorkerDrains) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 4}));
  job.ScheduleAll(100);
  for (int round = 0; round < 4; ++round) {
    job.WaitForSteps(100 + 600 * static_cast<uint64_t>(round));
    const ExitStatus exit = cluster->TerminateWorker(round % 2);
    EXPECT_EQ(exit.code, round < 2 ? 0 : 143) << exit.ToString();
    MU_ASSERT_OK(cluster->StartWorker(round % 2, {"--drained_exit_code=143"}));
  }
  job.JoinAndCheck();
  EXPECT_EQ(RepeatedPushes(c), 0u) << "no step was repeated";
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), Each("left"));
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), 4u);
}

TEST(Conformance, WorkerJoinsLate) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 8}));
  job.ScheduleAll(20);
  for (int worker = 1; worker < 4; ++worker) {
    job.WaitForSteps(300 * static_cast<uint64_t>(worker));
    MU_ASSERT_OK(cluster->StartWorker(worker));
  }
  WaitForWorkers(c, 4);
  job.JoinAndCheck();
  const auto steps = StepsByWorker(c);
  ASSERT_EQ(steps.size(), 4u);
  for (const auto& [worker, count] : steps) EXPECT_GT(count, 0u) << "worker " << worker;
}

TEST(Conformance, WorkerLeaves) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 1, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 8}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  for (int worker = 1; worker < 4; ++worker) MU_ASSERT_OK(cluster->StartWorker(worker));
  WaitForWorkers(c, 4);
  job.WaitForSteps(c.Stats().steps + 500);
  for (const int worker : {0, 2}) {
    EXPECT_TRUE(cluster->TerminateWorker(worker).ok());
    job.WaitForSteps(c.Stats().steps + 300);
  }
  EXPECT_EQ(c.Stats().workers_ready, 2u);
  job.JoinAndCheck();
  EXPECT_EQ(RepeatedPushes(c), 0u);
}

// Kubernetes starts a pod of the same index elsewhere, maybe before the old one's end is known.
TEST(Conformance, WorkerReplacedAtNewAddress) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 8}));
  const auto address = [&] {
    const pb::GetStatusReply status = c.runtime().Status();
    for (const auto& member : status.members()) {
      if (member.role() == pb::ROLE_WORKER && member.index() == 0) return member.address();
    }
    return std::string();
  };
  job.ScheduleAll(50);
  job.WaitForSteps(100);
  const std::string before = address();
  cluster->StopWorker(0);  // cut off, and not known to be dead
  const auto old = cluster->Release("worker", 0);
  MU_ASSERT_OK(cluster->StartWorker(0));
  WaitWhile([&] { return address() == before || address().empty(); });
  EXPECT_THAT(Losses(c, pb::ROLE_WORKER), Contains("replaced"));
  job.WaitForSteps(c.Stats().steps + 300);
  MU_ASSERT_OK(old->Kill(SIGCONT));
  EXPECT_EQ(old->Wait().code, 4) << "its place is taken: it ends, and does not come back";
  EXPECT_NE(address(), before);
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), 1u);
}

TEST(Conformance, SlowWorker) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  MU_ASSERT_OK(cluster->StartWorker(3, {"--slow_down=10"}));
  Coordinator& c = cluster->coordinator();
  WaitForWorkers(c, 4);
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 8}));
  job.ScheduleAll(20);
  job.JoinAndCheck();
  auto steps = StepsByWorker(c);
  const uint64_t slow = steps[3];
  steps.erase(3);
  for (const auto& [worker, count] : steps) {
    EXPECT_GT(count, 2 * slow) << "worker " << worker << " waited for the slow one";
  }
}

// So little that the others do it before the slow one would have done its part: it gets nothing,
// for everybody would wait for it in the end.
TEST(Conformance, SlowWorkerHoldsUpNoEnd) {
  constexpr int kRounds = 10;
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  MU_ASSERT_OK(cluster->StartWorker(3, {"--slow_down=10"}));
  Coordinator& c = cluster->coordinator();
  WaitForWorkers(c, 4);
  // Some milliseconds, so that what the network adds does not count
  MU_ASSERT_OK_AND_ASSIGN(const Function work, c.DefineFunction("work", [&](FunctionBuilder& f) {
    const Shape square({256, 256});
    Sym x =
        ConstantTensor(Tensor::Of<float>(square, std::vector<float>(256 * 256, 1))) * f.Arg("x");
    for (int i = 0; i < 4; ++i) x = MatMul(x, x);
    f.Return("sum", ReduceSum(x));
  }));
  const auto schedule = [&](int functions) {
    for (int i = 0; i < functions; ++i) c.Schedule(work, {.steps = 4, .args = {{"x", 1e-3}}});
    MU_ASSERT_OK(c.Join());
  };
  schedule(40);  // from here on it is known who is how fast
  uint64_t before = StepsByWorker(c)[3];
  EXPECT_GT(before, 0u);
  int rounds_with_slow = 0;
  for (int round = 0; round < kRounds; ++round) {
    schedule(6);
    const uint64_t after = StepsByWorker(c)[3];
    if (std::exchange(before, after) != after) ++rounds_with_slow;
  }
  // Who gives to whoever has least gives it one of six in every round. A measurement that went
  // wrong on a busy machine may cost one.
  EXPECT_LE(rounds_with_slow, 1);
}

}  // namespace
}  // namespace mu
