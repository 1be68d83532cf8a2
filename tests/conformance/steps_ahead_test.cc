// How far a step may be ahead of the first one that has not been applied (docs/consistency.md): as
// the steps see it themselves, on all servers, in the values that they read.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using ::testing::Each;
using testing::InFlight;
using testing::OnRequest;
using testing::StateOf;
using testing::TestCluster;
using testing::WaitWhile;

constexpr int64_t kPartitions = 12;  // spread over all servers

// Functions that have numbers, from 0, in the order of the job. Each of their steps reads how many
// steps of each function have been applied, on each partition, then adds 1 to its own function's.
class OrderedJob {
 public:
  struct Size {
    int64_t functions = 0;
    int64_t steps = 0;  // of each
    int64_t bound = 0;
    int64_t all() const { return functions * steps; }
  };

  static absl::StatusOr<OrderedJob> Create(Coordinator& c, const Size& size) {
    OrderedJob job;
    job.c_ = &c;
    job.size_ = size;
    c.BoundStaleness(static_cast<uint64_t>(size.bound));
    MU_ASSIGN_OR_RETURN(job.applied_,
                        c.CreateVariable({.name = "applied",
                                          .shape = Shape({kPartitions, size.functions}),
                                          .dtype = kInt64,
                                          .partitioner = FixedShards{kPartitions}}));
    MU_ASSIGN_OR_RETURN(job.missed_, c.CreateVariable({.name = "missed",
                                                       .shape = Shape({kPartitions}),
                                                       .dtype = kInt64,
                                                       .partitioner = FixedShards{kPartitions}}));
    MU_ASSIGN_OR_RETURN(job.weights_, c.CreateVariable({.name = "weights",
                                                        .shape = Shape({kPartitions}),
                                                        .partitioner = FixedShards{kPartitions}}));
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < kPartitions * size.functions; ++i)
      numbers.push_back(i % size.functions);
    const Tensor all_numbers = Tensor::Of<int64_t>(Shape({kPartitions, size.functions}), numbers);
    MU_ASSIGN_OR_RETURN(job.step_, c.DefineFunction("ordered", [&](FunctionBuilder& f) {
      const Sym number = ConstantTensor(all_numbers);
      const Sym applied = Read(job.applied_);
      // Of the job's first `needed` steps, how many are each function's.
      const Sym needed =
          Minimum(Maximum(f.Arg("needed", kInt64) - number * size.steps, 0), size.steps);
      // In the state, since nobody sees what a repeat returns.
      AssignAdd(job.missed_, ReduceSum(Cast(Less(applied, needed), kInt64), {1}));
      AssignAdd(job.applied_, Cast(Equal(number, f.Arg("number", kInt64)), kInt64));
      const Sym loss = ReduceSum(job.weights_);
      f.Minimize(loss, {.staleness = Staleness{}});
      f.Return("loss", loss);
      f.Return("applied", applied);
    }));
    return job;
  }

  // Until so many steps are, or all.
  void ScheduleUntil(uint64_t steps) {
    for (; scheduled_ < size_.functions && static_cast<uint64_t>(scheduled_ * size_.steps) < steps;
         ++scheduled_) {
      // Before the function's last step, so those of others that must have been applied.
      const int64_t needed =
          std::clamp(LastOf(scheduled_) - size_.bound, int64_t{0}, scheduled_ * size_.steps);
      values_[scheduled_] =
          c_->Schedule(step_, {.steps = static_cast<uint32_t>(size_.steps),
                               .args = {{"number", scheduled_}, {"needed", needed}}});
    }
  }
  void ScheduleAll() { ScheduleUntil(static_cast<uint64_t>(size_.all())); }
  int64_t scheduled() const { return scheduled_; }  // functions
  // Another coordinator has scheduled so many functions.
  void ContinueAt(int64_t scheduled) { scheduled_ = scheduled; }

  void JoinAndCheck() {
    MU_ASSERT_OK(c_->Join());
    EXPECT_EQ(c_->Stats().steps, static_cast<uint64_t>(size_.all()));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor applied, c_->Read(applied_));
    EXPECT_THAT(applied.flat<int64_t>(), Each(size_.steps));
    MU_ASSERT_OK_AND_ASSIGN(const Tensor missed, c_->Read(missed_));
    EXPECT_THAT(missed.flat<int64_t>(), Each(int64_t{0})) << "steps that started too early";
    for (const auto& [function, value] : values_) {
      MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, value.Fetch());
      ASSERT_EQ(result.steps(), static_cast<size_t>(size_.steps));
      for (int64_t step = 0; step < size_.steps; ++step) {
        MU_ASSERT_OK_AND_ASSIGN(const Tensor read,
                                result.Get(static_cast<size_t>(step), "applied"));
        CheckRead(function, step, read);
      }
    }
    EXPECT_LE(most_ahead_, size_.bound);
    const RuntimeStats stats = c_->Stats();
    EXPECT_GT(stats.waited_for_steps, 0u);
    EXPECT_GT(stats.staleness.steps, 0u);
    EXPECT_LE(stats.staleness.max, 2 * size_.bound) << "so many before it and as many after it";
  }
  // By how many steps the last step of a function was ahead of the first one of another function
  // that one of its steps did not find applied, at most.
  int64_t most_ahead() const { return most_ahead_; }

 private:
  int64_t LastOf(int64_t function) const { return (function + 1) * size_.steps - 1; }

  void CheckRead(int64_t function, int64_t step, const Tensor& read) {
    ASSERT_EQ(read.elements(), kPartitions * size_.functions);
    for (int64_t partition = 0; partition < kPartitions; ++partition) {
      const int64_t* const applied = read.data<int64_t>() + partition * size_.functions;
      EXPECT_GE(applied[function], step) << "a function's steps run in order";
      const int64_t* const first = std::find_if(applied, applied + function,
                                                [&](int64_t steps) { return steps < size_.steps; });
      if (first == applied + function) continue;
      const int64_t missing = (first - applied) * size_.steps + *first;
      most_ahead_ = std::max(most_ahead_, LastOf(function) - missing);
    }
  }

  Coordinator* c_ = nullptr;
  Size size_;
  Variable applied_, missed_, weights_;
  Function step_;
  int64_t scheduled_ = 0, most_ahead_ = 0;
  std::map<int64_t, RemoteValue> values_;  // by the functions' numbers
};

void WaitForSteps(const Coordinator& c, uint64_t steps) {
  WaitWhile([&] { return c.Stats().steps < steps; });
}

TEST(StepsAhead, AreBoundedWhateverIsKilled) {
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  Coordinator& c = cluster->coordinator();
  Checkpointer checkpointer(&c, OnRequest(cluster->directory() + "/checkpoints"));
  // Of the six functions that may be in flight the third has to wait.
  MU_ASSERT_OK_AND_ASSIGN(OrderedJob job,
                          OrderedJob::Create(c, {.functions = 120, .steps = 10, .bound = 25}));
  for (int kill = 0; kill < 4; ++kill) {
    const uint64_t before = c.Stats().steps;
    job.ScheduleUntil(before + 200);
    WaitForSteps(c, before + 100);
    if (kill == 2) {
      // After a checkpoint and some steps that it lacks.
      MU_ASSERT_OK(c.Checkpoint());
      const uint64_t covered = c.Stats().steps;
      job.ScheduleUntil(covered + 250);
      WaitForSteps(c, covered + 150);
      cluster->KillServer(0);
      MU_ASSERT_OK(cluster->StartServer(0));
      continue;
    }
    cluster->KillWorker(kill % 3);
    MU_ASSERT_OK(cluster->StartWorker(kill % 3));
  }
  ASSERT_LT(job.scheduled(), 120) << "the job is too short for so many losses";
  job.ScheduleAll();
  job.JoinAndCheck();
}

TEST(StepsAhead, AreBoundedWhenTheCoordinatorDies) {
  constexpr OrderedJob::Size kSize = {.functions = 60, .steps = 10, .bound = 25};
  MU_ASSERT_OK_AND_ASSIGN(auto cluster, TestCluster::Start({.workers = 3, .ps = 2}));
  const CheckpointerOptions options = OnRequest(cluster->directory() + "/checkpoints");
  int64_t scheduled = 0;
  uint64_t covered = 0;
  {
    Coordinator& c = cluster->coordinator();
    const Checkpointer checkpointer(&c, options);
    MU_ASSERT_OK_AND_ASSIGN(OrderedJob job, OrderedJob::Create(c, kSize));
    job.ScheduleUntil(200);
    WaitForSteps(c, 100);
    MU_ASSERT_OK(c.Checkpoint());
    covered = c.Stats().steps;
    scheduled = job.scheduled();
    job.ScheduleUntil(covered + 250);
    WaitForSteps(c, covered + 150);
  }
  cluster->DestroyCoordinator();
  MU_ASSERT_OK(cluster->StartCoordinator());
  Coordinator& c = cluster->coordinator();
  const Checkpointer checkpointer(&c, options);
  MU_ASSERT_OK_AND_ASSIGN(OrderedJob job, OrderedJob::Create(c, kSize));
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c.Restore());
  EXPECT_LE(restored.manifest.position().steps(), covered);
  job.ContinueAt(scheduled);
  job.ScheduleAll();
  job.JoinAndCheck();
}

struct Stop {
  const char* name;
  int64_t steps;  // of a function
  int64_t bound;
  int64_t functions;  // that start beside the first one before it ends
};

class AStoppedWorker : public ::testing::TestWithParam<Stop> {};

// It has the first function. The others run what the bound allows and nothing that it does not.
TEST_P(AStoppedWorker, IsAwaitedAtTheBound) {
  const Stop& stop = GetParam();
  MU_ASSERT_OK_AND_ASSIGN(
      auto cluster,
      TestCluster::Start(
          {.workers = 3, .ps = 2, .functions_in_flight = 1, .member_timeout = absl::Minutes(10)}));
  Coordinator& c = cluster->coordinator();
  MU_ASSERT_OK_AND_ASSIGN(OrderedJob job, OrderedJob::Create(c, {.functions = stop.functions + 30,
                                                                 .steps = stop.steps,
                                                                 .bound = stop.bound}));
  for (int worker = 0; worker < 3; ++worker)
    WaitWhile([&] { return StateOf(c, worker) != "ready"; });
  // Of workers that have nothing to do the first one is given the next function.
  cluster->StopWorker(0);
  job.ScheduleAll();
  // Who has ended a function is given the next one at once, if one may start.
  WaitWhile([&] { return InFlight(c, 1) + InFlight(c, 2) > 0; });
  EXPECT_EQ(InFlight(c, 0), 1u);
  EXPECT_EQ(c.Stats().steps, static_cast<uint64_t>(stop.functions * stop.steps));
  cluster->ContinueWorker(0);
  job.JoinAndCheck();
  if ((stop.bound + 1) % stop.steps == 0) {
    EXPECT_EQ(job.most_ahead(), stop.bound);
  }
}

INSTANTIATE_TEST_SUITE_P(
    StepsAhead, AStoppedWorker,
    ::testing::Values(Stop{.name = "SingleSteps", .steps = 1, .bound = 25, .functions = 25},
                      Stop{.name = "PackedThatJustFit", .steps = 10, .bound = 29, .functions = 2},
                      Stop{.name = "PackedOneTooMany", .steps = 10, .bound = 28, .functions = 1},
                      Stop{.name = "NothingAhead", .steps = 10, .bound = 0, .functions = 0}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mu
