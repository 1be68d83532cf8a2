// Turns (Schedule, Join, Schedule) of a program that loses servers: what it had joined is made
// again before anything runs, reads, saves or assigns that came after it.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/training/checkpointer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CountingCluster;
using ::testing::Each;
using ::testing::Ge;
using testing::TestCluster;

// The first turn. It takes two of three workers, and long: whoever does not wait for its repeats
// starts at once on the others and reads less.
constexpr int kCounts = 2;
constexpr uint32_t kCountSteps = 250;
constexpr int64_t kCounted = int64_t{kCounts} * kCountSteps;
// The second one
constexpr int kAdds = 6;
constexpr uint32_t kAddSteps = 5;
constexpr int kReads = 4;  // of functions that only read
// In synchronous rounds, where a function has one step. The last round of the first turn is small.
constexpr int kCountsInRounds = 101, kReplicas = 2;
static_assert(kCountsInRounds % kReplicas != 0 && kAdds % kReplicas == 0);

class Turns : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 3, .ps = 2}));
    Begin();
  }
  void Begin() {
    checkpointer_ = std::make_unique<Checkpointer>(
        &c(), testing::OnRequest(cluster_->directory() + "/checkpoints"));
    // Both on both servers.
    for (auto [variable, name] : {std::pair{&counter_, "counter"}, std::pair{&sum_, "sum"}}) {
      MU_ASSERT_OK_AND_ASSIGN(
          *variable,
          c().CreateVariable({.name = name,
                              .shape = Shape({CountingCluster::kPartitions}),
                              .dtype = kInt64,
                              .partitioner = FixedShards{CountingCluster::kPartitions}}));
    }
    MU_ASSERT_OK_AND_ASSIGN(count_, c().DefineFunction("count", [&](FunctionBuilder&) {
      AssignAdd(counter_, ConstantTensor(CountingCluster::All(1)));
    }));
    // What a repeat reads is nobody's result; the sum has it as well.
    MU_ASSERT_OK_AND_ASSIGN(add_, c().DefineFunction("add", [&](FunctionBuilder& f) {
      const Sym counter = Read(counter_);
      f.Return("counter", counter);
      f.Return("sum", Read(sum_));
      AssignAdd(sum_, counter);
    }));
    MU_ASSERT_OK_AND_ASSIGN(read_, c().DefineFunction("read", [&](FunctionBuilder& f) {
      f.Return("counter", Read(counter_));
    }));
  }
  Coordinator& c() { return cluster_->coordinator(); }

  std::vector<RemoteValue> Schedule(const Function& function, int calls, uint32_t steps = 1,
                                    const FunctionGroup& group = {}) {
    std::vector<RemoteValue> values;
    for (int i = 0; i < calls; ++i)
      values.push_back(c().Schedule(function, {.steps = steps, .group = group}));
    return values;
  }
  void CountAndJoin(int calls, uint32_t steps) {
    Schedule(count_, calls, steps);
    MU_ASSERT_OK(c().Join());
  }

  // Every step of these calls has read a whole value, such as `matcher` says.
  template <typename Matcher>
  void ExpectRead(const std::vector<RemoteValue>& calls, const std::string& name,
                  const Matcher& matcher) {
    for (const RemoteValue& call : calls) {
      ASSERT_TRUE(call.WaitFor(testing::kPatience)) << "it stands still";
      MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, call.Fetch());
      ASSERT_GT(result.steps(), 0u);
      for (size_t step = 0; step < result.steps(); ++step) {
        MU_ASSERT_OK_AND_ASSIGN(const Tensor value, result.Get(step, name));
        ASSERT_THAT(value.flat<int64_t>(), Each(matcher)) << name << " in step " << step;
      }
    }
  }
  int64_t ValueOf(const Variable& variable) {
    const absl::StatusOr<Tensor> value = c().Read(variable);
    EXPECT_THAT(value, testing::IsOk());
    if (!value.ok()) return -1;
    const auto values = value->flat<int64_t>();
    EXPECT_THAT(values, Each(values[0])) << "partitions differ";
    return values[0];
  }

  // Groups read beside functions that only read, and beside those of the next turn.
  void ExpectGroupsReadWholeValues(int counts, uint32_t count_steps, uint32_t add_steps);

  std::unique_ptr<TestCluster> cluster_;
  std::unique_ptr<Checkpointer> checkpointer_;  // before the coordinator that it uses
  Variable counter_, sum_;
  Function count_, add_, read_;
};

// From the initial values, so all turns so far are made again with each loss.
TEST_F(Turns, RunAfterWhatWasJoinedBeforeThem) {
  constexpr int64_t kAdded = kAdds * kAddSteps * kCounted;
  constexpr int kTurns = 3;
  CountAndJoin(kCounts, kCountSteps);
  for (int turn = 0; turn < kTurns; ++turn) {
    SCOPED_TRACE(turn);
    const int victim = turn % 2;
    cluster_->KillServer(victim);
    const std::vector<RemoteValue> adds = Schedule(add_, kAdds, kAddSteps);
    MU_ASSERT_OK(cluster_->StartServer(victim));
    EXPECT_EQ(ValueOf(counter_), kCounted) << "read while the next turn waits";
    ExpectRead(adds, "counter", kCounted);
    ExpectRead(adds, "sum", Ge(turn * kAdded));
    MU_ASSERT_OK(c().Join());
    EXPECT_EQ(ValueOf(sum_), (turn + 1) * kAdded) << "the repeats have read the same";
    const std::vector<MemberFailure> failures = c().Stats().failures;
    ASSERT_EQ(failures.size(), static_cast<size_t>(turn) + 1);
    EXPECT_GE(failures.back().steps_repeated,
              static_cast<uint64_t>(kCounted + turn * kAdds * int64_t{kAddSteps}));
  }
  // With nothing scheduled.
  cluster_->KillServer(1);
  MU_ASSERT_OK(cluster_->StartServer(1));
  EXPECT_EQ(ValueOf(sum_), kTurns * kAdded);
}

// From a checkpoint. What is pending has been scheduled after the loss and changes nothing, so it
// is no reason to take values as they are.
TEST_F(Turns, AreWholeForWhoReadsOrSavesBesideWhatOnlyReads) {
  constexpr int64_t kAll = 2 * kCounted;
  CountAndJoin(kCounts, kCountSteps);
  MU_ASSERT_OK(checkpointer_->TakeNow());
  CountAndJoin(kCounts, kCountSteps);

  cluster_->KillServer(0);
  std::vector<RemoteValue> reads = Schedule(read_, kReads);
  MU_ASSERT_OK(cluster_->StartServer(0));
  EXPECT_EQ(ValueOf(counter_), kAll);
  ExpectRead(reads, "counter", kAll);

  cluster_->KillServer(1);
  reads = Schedule(read_, kReads);
  MU_ASSERT_OK(cluster_->StartServer(1));
  const std::string saved = cluster_->directory() + "/saved";
  MU_ASSERT_OK(c().Save(saved));
  ExpectRead(reads, "counter", kAll);
  CountAndJoin(1, 10);
  EXPECT_EQ(ValueOf(counter_), kAll + 10);
  MU_ASSERT_OK(c().Restore(saved));
  EXPECT_EQ(ValueOf(counter_), kAll) << "as it was saved";
  for (const MemberFailure& failure : c().Stats().failures)
    EXPECT_GT(failure.steps_repeated, 0u) << "there was nothing to wait for";
}

void Turns::ExpectGroupsReadWholeValues(int counts, uint32_t count_steps, uint32_t add_steps) {
  const int64_t counted = int64_t{counts} * count_steps;
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup());
  CountAndJoin(counts, count_steps);

  cluster_->KillServer(0);
  const std::vector<RemoteValue> reads = Schedule(read_, kReads);
  std::vector<RemoteValue> evaluation = Schedule(read_, kReads, 1, group);
  MU_ASSERT_OK(cluster_->StartServer(0));
  ExpectRead(evaluation, "counter", counted);
  ExpectRead(reads, "counter", counted);
  MU_ASSERT_OK(c().Join());

  cluster_->KillServer(1);
  evaluation = Schedule(read_, kReads, 1, group);
  const std::vector<RemoteValue> adds = Schedule(add_, kAdds, add_steps);
  MU_ASSERT_OK(cluster_->StartServer(1));
  // Nobody has said that nothing more comes for the last round of the repeats.
  ExpectRead(evaluation, "counter", counted);
  ExpectRead(adds, "counter", counted);
  MU_ASSERT_OK(c().Join(group));
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(ValueOf(sum_), int64_t{kAdds} * add_steps * counted);
}

TEST_F(Turns, AreWholeForGroups) { ExpectGroupsReadWholeValues(kCounts, kCountSteps, kAddSteps); }

TEST_F(Turns, AreWholeForGroupsBesideSynchronousRounds) {
  MU_ASSERT_OK(c().SynchronousRounds({.replicas = kReplicas}));
  ExpectGroupsReadWholeValues(kCountsInRounds, 1, 1);
}

// The repeats would add to the value that is assigned.
TEST_F(Turns, ComeBeforeAnAssignmentInSynchronousRounds) {
  constexpr int64_t kAssigned = 1000;
  MU_ASSERT_OK(c().SynchronousRounds({.replicas = kReplicas}));
  CountAndJoin(kCountsInRounds, 1);
  cluster_->KillServer(0);
  Schedule(read_, kReads);
  MU_ASSERT_OK(cluster_->StartServer(0));
  MU_ASSERT_OK(c().Assign(counter_, CountingCluster::All(kAssigned)));
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(ValueOf(counter_), kAssigned);
  // It is made again itself, after them.
  cluster_->KillServer(1);
  MU_ASSERT_OK(cluster_->StartServer(1));
  EXPECT_EQ(ValueOf(counter_), kAssigned);
}

// A checkpoint that lacks two turns, since both were to be made again when it was taken: for the
// next coordinator they are two turns as well.
TEST_F(Turns, StayTurnsWhenTheJobContinues) {
  CountAndJoin(kCounts, kCountSteps);
  Schedule(add_, kAdds, kAddSteps);
  MU_ASSERT_OK(c().Join());
  // So that no repeat ends before the checkpoint.
  for (int worker = 0; worker < 3; ++worker) cluster_->StopWorker(worker);
  cluster_->KillServer(0);
  MU_ASSERT_OK(cluster_->StartServer(0));
  MU_ASSERT_OK(checkpointer_->TakeNow());
  for (int worker = 0; worker < 3; ++worker) cluster_->ContinueWorker(worker);
  checkpointer_.reset();
  cluster_->DestroyCoordinator();

  MU_ASSERT_OK(cluster_->StartCoordinator());
  Begin();
  MU_ASSERT_OK_AND_ASSIGN(const RestoredJob restored, c().Restore());
  ASSERT_EQ(restored.unfinished.size(), size_t{kCounts + kAdds});
  const std::vector<RemoteValue> adds(restored.unfinished.begin() + kCounts,
                                      restored.unfinished.end());
  ExpectRead(adds, "counter", kCounted);
  MU_ASSERT_OK(c().Join());
  EXPECT_EQ(ValueOf(counter_), kCounted);
  EXPECT_EQ(ValueOf(sum_), kAdds * kAddSteps * kCounted);
}

}  // namespace
}  // namespace mu
