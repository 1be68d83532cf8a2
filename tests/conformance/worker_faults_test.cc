// Workers that are killed: their functions go on elsewhere, nothing is lost or repeated.
#include <string>
#include <vector>

#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::DefineLog;
using testing::HasCode;
using testing::InFlight;
using testing::kForever;
using testing::Losses;
using testing::Numbers;
using testing::StartCounting;
using testing::StateOf;
using testing::StepsByWorker;
using testing::TestCluster;
using testing::WaitForWorkers;
using testing::WaitWhile;
using testing::WriteFile;

void KillBetweenFunctions(int workers, int servers) {
  SCOPED_TRACE(absl::StrCat(workers, "/", servers));
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = workers, .ps = servers}));
  for (int round = 0; round < 3; ++round) {
    t.c().Schedule(t.count, {.steps = 10});
    MU_ASSERT_OK(t.c().Join());
    for (int worker = 0; worker < workers; ++worker) t.cluster->KillWorker(worker);
    const RemoteValue next = t.c().Schedule(t.count, {.steps = 10});
    EXPECT_FALSE(next.Done()) << "nobody is there to run it";
    MU_ASSERT_OK(t.cluster->StartWorker(round % workers));
    MU_ASSERT_OK(next.Fetch());
    for (int other = 1; other < workers; ++other)
      MU_ASSERT_OK(t.cluster->StartWorker((round + other) % workers));
  }
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 60);
}

TEST(Conformance, WorkerKilledBetweenFunctions) {
  KillBetweenFunctions(1, 1);
  KillBetweenFunctions(2, 2);
}

TEST(Conformance, WorkerKilledMidFunction) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2, .functions_in_flight = 1}));
  std::vector<RemoteValue> values;
  for (int i = 0; i < 2; ++i) values.push_back(t.c().Schedule(t.count, {.steps = 1500}));
  WaitWhile([&] { return t.c().Stats().steps < 300; });
  t.cluster->KillWorker(0);
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 3000) << "the other worker went on after the last finished step";
  for (const RemoteValue& value : values) {
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
    EXPECT_EQ(result.steps(), 1500u);
  }
  const RuntimeStats stats = t.c().Stats();
  EXPECT_EQ(stats.steps, 3000u);
  ASSERT_EQ(stats.failures.size(), 1u);
  EXPECT_LT(stats.failures[0].steps_repeated, 50u) << "of more than a hundred that it had run";
}

// Steps that take much longer than the time for which a worker holds results of quick ones: each
// result has gone before the next step ends.
TEST(Conformance, AKilledWorkerCostsAtMostTheStepThatItRan) {
  constexpr uint32_t kSteps = 15;
  MU_ASSERT_OK_AND_ASSIGN(
      auto t,
      StartCounting(
          {.workers = 2, .ps = 2, .functions_in_flight = 1, .worker_flags = {"--slow_down=200"}}));
  for (int i = 0; i < 2; ++i) t.c().Schedule(t.count, {.steps = kSteps});
  WaitWhile([&] { return StepsByWorker(t.c())[0] < 5; });
  ASSERT_EQ(InFlight(t.c(), 0), 1u) << "it is in the middle of its function";
  t.cluster->KillWorker(0);
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), 2 * kSteps);
  const RuntimeStats stats = t.c().Stats();
  EXPECT_EQ(stats.steps, 2 * kSteps);
  ASSERT_EQ(stats.failures.size(), 1u);
  EXPECT_LE(stats.failures[0].steps_repeated, 1u) << "of at least five that it had run";
}

TEST(Conformance, UpdateAppliedExactlyOnce) {
  constexpr int kKills = 50;
  constexpr CheckedJob::Size kSize = {.epochs = 10};
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 3}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, kSize));
  job.ScheduleAll(20);
  // Each finds a worker that has functions, and steps under way.
  for (int kill = 0; kill < kKills; ++kill) {
    WaitWhile([&] {
      if (c.Stats().steps >= kSize.steps()) return false;
      return Losses(c, pb::ROLE_WORKER).size() < static_cast<size_t>(kill) ||
             InFlight(c, kill % 2) == 0;
    });
    job.WaitForSteps(c.Stats().steps + 20);
    cluster->KillWorker(kill % 2);
    MU_ASSERT_OK(cluster->StartWorker(kill % 2));
  }
  ASSERT_LT(c.Stats().steps, kSize.steps()) << "the job was over before the last kill";
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), static_cast<size_t>(kKills));
}

// Both of two: the job stands still until one is back.
TEST(Conformance, TwoWorkersKilled) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 2, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 4}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  for (int worker = 0; worker < 2; ++worker) cluster->KillWorker(worker);
  WaitForWorkers(c, 0);  // all that they had said has been heard
  const uint64_t steps = c.Stats().steps;
  ASSERT_LT(steps + 200, (CheckedJob::Size{.epochs = 4}.steps()));
  EXPECT_FALSE(
      testing::Eventually([&] { return c.Stats().steps != steps; }, absl::Milliseconds(500)))
      << "nobody is there to run them";
  MU_ASSERT_OK(cluster->StartWorker(0));
  job.WaitForSteps(steps + 200);
  EXPECT_GE(c.Stats().steps, steps + 200) << "one is enough to go on";
  EXPECT_EQ(c.Stats().workers_ready, 1u);
  MU_ASSERT_OK(cluster->StartWorker(1));
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), 2u);
}

TEST(Conformance, AllWorkersKilled) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 4, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job, CheckedJob::Create(*cluster, {.epochs = 8}));
  job.ScheduleAll(20);
  job.WaitForSteps(100);
  for (int worker = 0; worker < 4; ++worker) cluster->KillWorker(worker);
  for (int round = 0; round < 3; ++round) {
    WaitForWorkers(c, 0);
    const uint64_t steps = c.Stats().steps;
    MU_ASSERT_OK(cluster->StartWorker(round));
    job.WaitForSteps(steps + 150);
    EXPECT_GE(c.Stats().steps, steps + 150) << "one is enough to go on";
    cluster->KillWorker(round);  // all of them again
  }
  for (int worker = 0; worker < 4; ++worker) MU_ASSERT_OK(cluster->StartWorker(worker));
  job.JoinAndCheck();
  EXPECT_EQ(Losses(c, pb::ROLE_WORKER).size(), 7u);
}

TEST(Conformance, WorkerKilledWhileInstalling) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2}));
  constexpr int kRounds = 8;
  for (int round = 0; round < kRounds; ++round) {
    const int first = round % 2, second = 1 - first;
    const std::string file = absl::StrCat(t.cluster->directory(), "/", round, ".csv");
    WriteFile(file, Numbers(0, 40));
    WaitWhile([&] {
      return Losses(t.c(), pb::ROLE_WORKER).size() < 2 * static_cast<size_t>(round) ||
             StateOf(t.c(), first) != "ready" || StateOf(t.c(), second) != "ready";
    });
    t.cluster->StopWorker(first);  // it does not answer what it is sent from here on
    MU_ASSERT_OK_AND_ASSIGN(const Dataset data,
                            t.c().CreateDataset(Csv({file}).Id("id", 0, 0).Batch(4)));
    MU_ASSERT_OK_AND_ASSIGN(
        const Function add,
        t.c().DefineFunction(absl::StrCat("add", round), [&](FunctionBuilder& f) {
          AssignAdd(t.counter, ConstantTensor(t.All(1)) * ReduceSum(f.NextBatch(data)["id"]));
        }));
    EXPECT_EQ(StateOf(t.c(), first), "installing");
    t.cluster->KillWorker(first);
    t.c().Schedule(add, {.steps = 10});
    MU_ASSERT_OK(t.cluster->StartWorker(first));
    t.cluster->KillWorker(second);  // it may be installing as well
    MU_ASSERT_OK(t.cluster->StartWorker(second));
  }
  MU_ASSERT_OK(t.c().Join());
  EXPECT_EQ(t.Count(), kRounds * 39 * 40 / 2);
}

TEST(Conformance, WorkerKilledWithUserError) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.workers = 2, .ps = 2, .functions_in_flight = 1}));
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(t.c(), "log"));
  t.c().Schedule(t.count, {.steps = kForever});
  WaitWhile([&] { return t.c().Stats().steps == 0; });
  const RemoteValue bad = t.c().Schedule(log, {.args = {{"x", -1}}});
  t.cluster->KillWorker(0);
  MU_ASSERT_OK(t.cluster->StartWorker(0));
  const absl::Status joined = t.c().Join();
  EXPECT_EQ(KindOf(joined), pb::ERROR_USER) << joined;
  EXPECT_EQ(DetailOf(joined)->function(), "log");
  EXPECT_EQ(bad.Fetch().status(), joined);
  MU_EXPECT_OK(t.c().Join());
}

TEST(Conformance, FetchedValueSurvivesItsWorker) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting());
  const RemoteValue value = t.c().Schedule(t.count, {.steps = 3});
  MU_ASSERT_OK(t.c().Join());
  t.cluster->KillWorker(0);
  MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
  MU_ASSERT_OK_AND_ASSIGN(const Tensor last, result.Get(2, "before"));
  EXPECT_EQ(*last.data<int64_t>(), 2);
}

// The records that a function of 25 steps sees, in order; its worker may be killed after some of
// them.
absl::StatusOr<std::vector<int64_t>> RecordsSeen(bool kill) {
  MU_ASSIGN_OR_RETURN(
      auto cluster,
      TestCluster::Start(
          {.workers = 2, .ps = 2, .worker_flags = {kill ? "--slow_down=200" : "--slow_down=20"}}));
  Coordinator& c = cluster->coordinator();
  WriteFile(cluster->directory() + "/data.csv", Numbers(0, 100));
  MU_ASSIGN_OR_RETURN(const Dataset data, c.CreateDataset(Csv({cluster->directory() + "/data.csv"})
                                                              .Id("id", 0, 0)
                                                              .Batch(4)
                                                              .BlockRecords(8)
                                                              .Shuffle(100)
                                                              .Epochs(1)));
  MU_ASSIGN_OR_RETURN(const Variable sum, c.CreateVariable({.name = "sum", .dtype = kInt64}));
  MU_ASSIGN_OR_RETURN(const Function read, c.DefineFunction("read", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data)["id"];
    AssignAdd(sum, ReduceSum(id));
    f.Return("ids", id);
    f.Return("worker", f.WorkerIndex());
  }));
  const RemoteValue value = c.Schedule(read, {.steps = 25});
  WaitWhile([&] { return c.Stats().steps < 5; });
  const pb::GetStatusReply status = c.runtime().Status();
  for (const auto& member : status.members()) {
    if (kill && member.in_flight() > 0) cluster->KillWorker(static_cast<int>(member.index()));
  }
  MU_ASSIGN_OR_RETURN(const FunctionResult result, value.Fetch());
  std::vector<int64_t> ids;
  for (size_t step = 0; step < result.steps(); ++step) {
    MU_ASSIGN_OR_RETURN(const Tensor seen, result.Get(step, "ids"));
    for (const int64_t id : seen.flat<int64_t>()) ids.push_back(id);
  }
  MU_ASSIGN_OR_RETURN(const Tensor first, result.Get(0, "worker"));
  MU_ASSIGN_OR_RETURN(const Tensor last, result.Get(result.steps() - 1, "worker"));
  EXPECT_EQ(*first.data<int64_t>() != *last.data<int64_t>(), kill);
  MU_ASSIGN_OR_RETURN(const Tensor total, c.Read(sum));
  EXPECT_EQ(*total.data<int64_t>(), 99 * 100 / 2) << "each record once";
  return ids;
}

TEST(Conformance, LeaseMovesToAnotherWorker) {
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> undisturbed, RecordsSeen(false));
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<int64_t> moved, RecordsSeen(true));
  ASSERT_EQ(undisturbed.size(), 100u);
  EXPECT_EQ(moved, undisturbed);
}

TEST(Conformance, ErrorTypeNamesTheFailedRole) {
  MU_ASSERT_OK_AND_ASSIGN(auto t, StartCounting({.member_timeout = absl::Seconds(2)}));
  const RemoteValue value = t.c().Schedule(t.count, {.steps = kForever});
  WaitWhile([&] { return t.c().Stats().steps == 0; });
  t.cluster->KillWorker(0);
  WaitWhile([&] { return t.c().Stats().failures.empty(); });
  EXPECT_EQ(t.c().Stats().failures[0].role, pb::ROLE_WORKER);
  EXPECT_EQ(t.c().Stats().failures[0].index, 0u);
  EXPECT_FALSE(value.Done()) << "a lost worker is no error of a function";
  MU_ASSERT_OK(t.cluster->StartWorker(0));
  t.cluster->KillServer(0);
  const absl::Status lost = t.c().Join();
  EXPECT_EQ(KindOf(lost), pb::ERROR_MACHINE) << lost;
  ASSERT_TRUE(DetailOf(lost).has_value());
  EXPECT_EQ(DetailOf(lost)->role(), pb::ROLE_PSSERVER);
  EXPECT_EQ(DetailOf(lost)->index(), 0u);
}

}  // namespace
}  // namespace mu
