// Evaluations beside training: groups of functions that read the current values or those of a named
// checkpoint, on the same workers, whatever dies.
#include <algorithm>
#include <atomic>
#include <thread>

#include "coordinator/cluster/kept_checkpoint.h"
#include "coordinator/training/checkpointer.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/forward.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu {
namespace {

using testing::DefineLog;
using testing::HasCode;
using testing::Numbers;
using testing::TestCluster;
using testing::WriteFile;

constexpr int64_t kRecords = 400, kBatch = 10;

class EvaluatedBesideTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start({.workers = 2, .ps = 2}));
    WriteFile(cluster_->directory() + "/numbers.csv", Numbers(0, kRecords));
    Create();
  }
  // What the coordinator of now needs.
  void Create() {
    const auto numbers = [&](const char* name) {
      return Csv({cluster_->directory() + "/numbers.csv"}).Id("id", 0, 0).Batch(kBatch).Name(name);
    };
    checkpointer_.emplace(&c(),
                          CheckpointerOptions{.directory = cluster_->directory() + "/checkpoints",
                                              .every = absl::InfiniteDuration(),
                                              .keep = 1});
    MU_ASSERT_OK_AND_ASSIGN(data_, c().CreateDataset(numbers("train").Shuffle(50)));
    MU_ASSERT_OK_AND_ASSIGN(test_, c().CreateDataset(numbers("test").Epochs(1)));
    MU_ASSERT_OK_AND_ASSIGN(
        weights_, c().CreateVariable(
                      {.name = "weights", .shape = Shape({8}), .partitioner = FixedShards{4}}));
    const auto score = [&](const Sym& id) {
      return (Cast(id, kFloat32) / static_cast<float>(kRecords) - 0.5f) * ReduceSum(Read(weights_));
    };
    MU_ASSERT_OK_AND_ASSIGN(step_, c().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym off = score(f.NextBatch(data_)["id"]) - 1.0f;
      const Sym loss = ReduceMean(off * off);
      f.Minimize(loss);
      f.Return("loss", loss);
    }));
    MU_ASSERT_OK_AND_ASSIGN(forward_, c().DefineFunction("forward", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(test_)["id"];
      f.Return("prediction", Sigmoid(score(id)));
      const Sym half = Cast(id, kFloat32) / static_cast<float>(kRecords);
      f.Return("label", half * 0.0f + Cast(Cast(half * 1.99f, kInt64), kFloat32));
    }));
  }
  void TearDown() override { checkpointer_.reset(); }
  // Another coordinator, which continues the job.
  void Restart() {
    checkpointer_.reset();
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    ASSERT_NO_FATAL_FAILURE(Create());
    MU_ASSERT_OK(c().Restore().status());
  }
  void ScheduleTraining(int functions) {
    for (int i = 0; i < functions; ++i) c().Schedule(step_, {.steps = 5});
  }
  Coordinator& c() { return cluster_->coordinator(); }

  // Metrics of the group's values, over all records.
  absl::StatusOr<std::map<std::string, double>> Evaluate(const FunctionGroup& group) {
    MU_ASSIGN_OR_RETURN(Measurement measurement,
                        Measurement::Create(ForwardOf(Task::kBinaryClassification),
                                            {std::string("auc"), std::string("logloss")}));
    MU_ASSIGN_OR_RETURN(
        const uint64_t records,
        ForEachBatch(c(), forward_, test_,
                     {.returns = measurement.returns(), .steps_per_function = 2, .group = group},
                     [&](const EvaluatedBatch& batch) { return measurement.Add(batch); }));
    EXPECT_EQ(records, uint64_t{kRecords});
    std::map<std::string, double> metrics;
    for (const MetricValue& metric : measurement.Values()) metrics[metric.name] = metric.value;
    return metrics;
  }
  absl::StatusOr<std::map<std::string, double>> Evaluate(const std::string& checkpoint) {
    MU_ASSIGN_OR_RETURN(const FunctionGroup group, c().CreateGroup({.checkpoint = checkpoint}));
    return Evaluate(group);
  }

  std::unique_ptr<TestCluster> cluster_;
  std::optional<Checkpointer> checkpointer_;
  Dataset data_, test_;
  Variable weights_;
  Function step_, forward_;
};

TEST_F(EvaluatedBesideTest, AnErrorEndsItsGroupOnlyAndIsReportedOnce) {
  MU_ASSERT_OK_AND_ASSIGN(const Function log, DefineLog(c(), "log"));
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup other, c().CreateGroup());
  std::vector<RemoteValue> steps;
  for (int i = 0; i < 20; ++i) steps.push_back(c().Schedule(step_, {.steps = 5}));
  const RemoteValue bad = c().Schedule(log, {.args = {{"x", -1.0}}, .group = group});
  const RemoteValue good = c().Schedule(log, {.args = {{"x", 1.0}}, .group = other});
  EXPECT_THAT(c().Join(group), HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(c().Join(group)) << "once";
  EXPECT_THAT(bad.Fetch().status(), HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(c().Join(other));
  MU_EXPECT_OK(good.Fetch().status());
  MU_EXPECT_OK(c().Join());
  for (const RemoteValue& step : steps) MU_EXPECT_OK(step.Fetch().status());
  // And the reverse.
  const RemoteValue evaluated = c().Schedule(log, {.args = {{"x", 1.0}}, .group = other});
  c().Schedule(log, {.args = {{"x", -1.0}}});
  EXPECT_THAT(c().Join(), HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(c().Join(other));
  MU_EXPECT_OK(evaluated.Fetch().status());
}

TEST_F(EvaluatedBesideTest, OnlyWhatReadsMayRunInAGroup) {
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup());
  EXPECT_THAT(c().Schedule(step_, {.group = group}).Fetch().status(),
              HasCode(absl::StatusCode::kInvalidArgument));
  MU_EXPECT_OK(c().Join()) << "training has no part in it";
}

TEST_F(EvaluatedBesideTest, ACheckpointThatIsNoneIsAnErrorAtOnce) {
  EXPECT_THAT(c().CreateGroup({.checkpoint = cluster_->directory()}).status(),
              HasCode(absl::StatusCode::kNotFound));
}

// The values of the state are replaced, those of the view stay.
TEST_F(EvaluatedBesideTest, TheStateIsRestoredBetweenFunctionsOfAGroup) {
  c().Schedule(step_, {.steps = 10});
  MU_ASSERT_OK_AND_ASSIGN(const std::string first, checkpointer_->TakeWhole());
  MU_ASSERT_OK_AND_ASSIGN(const auto calm, Evaluate(first));
  MU_ASSERT_OK_AND_ASSIGN(const Tensor weights, c().Read(weights_));
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup({.checkpoint = first}));
  std::atomic<bool> over = false;
  std::atomic<int> evaluated = 0;
  std::thread evaluation([&] {
    for (; !over; ++evaluated) {
      const auto metrics = Evaluate(group);
      MU_EXPECT_OK(metrics.status());
      if (metrics.ok()) EXPECT_EQ(*metrics, calm);
    }
  });
  for (int i = 0; i < 10; ++i) {
    const int before = evaluated;
    c().Schedule(step_, {.steps = 10});
    MU_EXPECT_OK(c().Join());
    MU_EXPECT_OK(c().Restore(first).status());
    const auto restored = c().Read(weights_);
    MU_EXPECT_OK(restored.status());
    if (restored.ok()) EXPECT_TRUE(restored->flat<float>() == weights.flat<float>());
    testing::WaitWhile([&] { return evaluated == before; });
  }
  over = true;
  evaluation.join();
}

// Workers die one after the other, servers twice, and checkpoints push out older ones.
TEST_F(EvaluatedBesideTest, FiftyTimesTheSameToTheLastDigitWhateverDies) {
  for (int i = 0; i < 4; ++i) c().Schedule(step_, {.steps = 10});
  MU_ASSERT_OK_AND_ASSIGN(const std::string named, checkpointer_->TakeWhole());
  MU_ASSERT_OK_AND_ASSIGN(const auto calm, Evaluate(named));
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup held, c().CreateGroup({.checkpoint = named}));
  std::atomic<bool> over = false;
  std::thread chaos([&] {
    for (int i = 0; !over; ++i) {
      cluster_->KillWorker(i % 2);
      MU_EXPECT_OK(cluster_->StartWorker(i % 2));
      if (i == 3 || i == 8) {
        cluster_->KillServer(i % 2);
        MU_EXPECT_OK(cluster_->StartServer(i % 2));
      }
      // Work goes on before the next one dies.
      const uint64_t steps = c().Counts().steps;
      testing::WaitWhile([&] { return !over && c().Counts().steps < steps + 40; });
    }
  });
  for (int i = 0; i < 50; ++i) {
    if (c().Counts().unfinished < 10) {
      for (int f = 0; f < 10; ++f) c().Schedule(step_, {.steps = 5});
    }
    if (i % 10 == 5) checkpointer_->TakeNow().status().IgnoreError();  // a server may be lost
    const auto evaluated = Evaluate(named);
    MU_EXPECT_OK(evaluated.status()) << "evaluation " << i;
    if (evaluated.ok()) EXPECT_EQ(*evaluated, calm) << "evaluation " << i;
  }
  over = true;
  chaos.join();
  MU_EXPECT_OK(c().Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup current, c().CreateGroup());
  MU_ASSERT_OK_AND_ASSIGN(const auto now, Evaluate(current));
  EXPECT_NE(now, calm) << "training has gone on";
}

// Each coordinator but the last one goes away with an evaluation under way. (With SIGKILL, and
// daemons that die: EvaluateOneCheckpoint.)
TEST_F(EvaluatedBesideTest, TheSameToTheLastDigitFromOneCoordinatorToTheNext) {
  ScheduleTraining(8);
  MU_ASSERT_OK_AND_ASSIGN(const std::string named, checkpointer_->TakeWhole());
  MU_ASSERT_OK(MarkKept(named, true));
  MU_ASSERT_OK_AND_ASSIGN(const auto calm, Evaluate(named));
  constexpr int kLives = 3;
  for (int life = 0; life < kLives; ++life) {
    SCOPED_TRACE(life);
    const uint64_t trained = c().Counts().steps;
    for (int i = 0; i < 3; ++i) {
      ScheduleTraining(10);
      MU_ASSERT_OK_AND_ASSIGN(const auto evaluated, Evaluate(named));
      EXPECT_EQ(evaluated, calm) << "evaluation " << i;
    }
    MU_ASSERT_OK(checkpointer_->TakeNow());
    if (life == kLives - 1) break;
    // The next evaluation, of which a part is done.
    ScheduleTraining(40);
    MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup group, c().CreateGroup({.checkpoint = named}));
    MU_ASSERT_OK(c().StartEpoch(test_, 0));
    const RemoteValue first = c().Schedule(forward_, {.steps = 2, .group = group});
    for (int64_t batch = 2; batch < kRecords / kBatch; ++batch)
      c().Schedule(forward_, {.steps = 1, .group = group});
    MU_ASSERT_OK(first.Fetch());
    testing::WaitWhile([&] { return c().Counts().steps < trained + 50; });
    ASSERT_NO_FATAL_FAILURE(Restart());
  }
  MU_ASSERT_OK(c().Join());
  MU_ASSERT_OK_AND_ASSIGN(const FunctionGroup current, c().CreateGroup());
  MU_ASSERT_OK_AND_ASSIGN(const auto now, Evaluate(current));
  EXPECT_NE(now, calm) << "training has gone on";
}

}  // namespace
}  // namespace mu
