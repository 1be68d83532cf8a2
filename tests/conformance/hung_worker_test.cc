// One of four workers hangs, but is not lost: stopped, or in a step that does not end while its
// heartbeats go on. The others are not held up, in training and in evaluation.
#include <algorithm>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "common/base/steady_now.h"
#include "coordinator/training/evaluator.h"
#include "coordinator/training/trainer.h"
#include "tests/conformance/checked_job.h"

namespace mu {
namespace {

using testing::CheckedJob;
using testing::InFlight;
using testing::Losses;
using testing::Numbers;
using testing::TestCluster;
using testing::TestClusterOptions;
using testing::WaitForWorkers;
using testing::WaitWhile;
using testing::WriteFile;

enum class How { kStopped, kHangs };

constexpr int kHung = 3;  // the worker
constexpr int kInFlight = 2;
constexpr uint32_t kPacked = 2;                            // steps of a function
constexpr uint64_t kHeld = uint64_t{kInFlight} * kPacked;  // steps that it keeps, at most
constexpr int64_t kRecords = 8000;  // so many that it hangs before all is done
constexpr uint32_t kBatch = 4;

class HungWorker : public ::testing::TestWithParam<How> {
 protected:
  void SetUp() override {
    TestClusterOptions options = {.workers = 3,
                                  .ps = 2,
                                  .functions_in_flight = kInFlight,
                                  .member_timeout = absl::Minutes(10),
                                  .backup_after = backup_after_};
    std::vector<std::string> flags;
    if (GetParam() == How::kHangs) flags = {"--slow_down=1e9"};
    MU_ASSERT_OK_AND_ASSIGN(cluster_, TestCluster::Start(options));
    MU_ASSERT_OK(cluster_->StartWorker(kHung, flags));
    WaitForWorkers(c(), 4);
    WriteFile(cluster_->directory() + "/data.csv", Numbers(0, kRecords));
    MU_ASSERT_OK_AND_ASSIGN(
        data_,
        c().CreateDataset(Csv({cluster_->directory() + "/data.csv"}).Id("id", 0, 0).Batch(kBatch)));
  }
  Coordinator& c() { return cluster_->coordinator(); }

  // While `run` runs: the worker hangs, the others do everything but what it holds; then it is
  // released.
  void RunWhileItHangs(const std::function<void()>& run) {
    std::thread running(run);
    WaitWhile([&] { return InFlight(c(), kHung) == 0 || c().Stats().steps == 0; });
    if (GetParam() == How::kStopped) cluster_->StopWorker(kHung);
    EXPECT_TRUE(
        testing::Eventually([&] { return c().Stats().steps + kHeld >= kSteps; }, absl::Seconds(8)))
        << "the others stand still";
    EXPECT_THAT(Losses(c(), pb::ROLE_WORKER), ::testing::IsEmpty());
    if (GetParam() == How::kStopped) {
      cluster_->ContinueWorker(kHung);
    } else {
      cluster_->KillWorker(kHung);
    }
    running.join();
    EXPECT_EQ(c().Stats().steps, kSteps);
  }

  static constexpr uint64_t kSteps = kRecords / kBatch;
  absl::Duration backup_after_ = absl::Seconds(30);
  std::unique_ptr<TestCluster> cluster_;
  Dataset data_;
};

TEST_P(HungWorker, HoldsUpNobodyInTraining) {
  MU_ASSERT_OK_AND_ASSIGN(const Variable sum, c().CreateVariable({.name = "sum", .dtype = kInt64}));
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c().DefineFunction("step", [&](FunctionBuilder& f) {
    const Sym id = f.NextBatch(data_)["id"];
    AssignAdd(sum, ReduceSum(id));
    f.Return("loss", ReduceMean(Cast(id, kFloat32)));
  }));
  absl::StatusOr<TrainResult> result;
  RunWhileItHangs([&] { result = Train(c(), step, data_, {.steps_per_function = kPacked}); });
  MU_ASSERT_OK(result);
  EXPECT_EQ(result->steps, kSteps);
  EXPECT_EQ(result->samples, static_cast<uint64_t>(kRecords));
  EXPECT_NEAR(result->last_epoch_loss, (kRecords - 1) / 2.0, 1e-6) << "of every step, once";
  MU_ASSERT_OK_AND_ASSIGN(const Tensor total, c().Read(sum));
  EXPECT_EQ(*total.data<int64_t>(), kRecords * (kRecords - 1) / 2);
}

TEST_P(HungWorker, HoldsUpNobodyInEvaluation) {
  MU_ASSERT_OK_AND_ASSIGN(const Function step, c().DefineFunction("step", [&](FunctionBuilder& f) {
    f.Return("prediction", Cast(f.NextBatch(data_)["id"], kFloat32));
  }));
  std::vector<float> seen;
  absl::StatusOr<uint64_t> records;
  RunWhileItHangs([&] {
    records = ForEachPrediction(c(), step, data_,
                                {.label = "", .steps_per_function = kPacked, .in_order = true},
                                [&](absl::Span<const float> predictions, auto) {
                                  seen.insert(seen.end(), predictions.begin(), predictions.end());
                                  return absl::OkStatus();
                                });
  });
  MU_ASSERT_OK(records);
  EXPECT_EQ(*records, static_cast<uint64_t>(kRecords));
  std::vector<float> all(kRecords);
  std::iota(all.begin(), all.end(), 0.0f);
  EXPECT_EQ(seen, all) << "in the order of the dataset";
}

// Nobody releases it: what it holds runs elsewhere too, once, and is counted apart.
TEST_P(HungWorker, RunsElsewhereToo) {
  cluster_.reset();
  backup_after_ = absl::Seconds(1);
  SetUp();
  MU_ASSERT_OK_AND_ASSIGN(const CheckedJob job,
                          CheckedJob::Create(*cluster_, {.records = kRecords, .batch = kBatch}));
  job.ScheduleAll(kPacked);
  WaitWhile([&] { return InFlight(c(), kHung) == 0 || c().Stats().steps == 0; });
  if (GetParam() == How::kStopped) cluster_->StopWorker(kHung);
  job.JoinAndCheck();
  EXPECT_GT(InFlight(c(), kHung), 0u) << "it still has what it hangs on";
  EXPECT_GT(c().Stats().backup_runs.runs, 0u);
  EXPECT_THAT(Losses(c(), pb::ROLE_WORKER), ::testing::IsEmpty());
  if (GetParam() == How::kHangs) return;
  cluster_->ContinueWorker(kHung);
  WaitWhile([&] { return InFlight(c(), kHung) > 0; });
  job.JoinAndCheck();  // what it did late has changed nothing
}

INSTANTIATE_TEST_SUITE_P(Conformance, HungWorker, ::testing::Values(How::kStopped, How::kHangs),
                         [](const auto& test) {
                           return test.param == How::kStopped ? "Stopped" : "InAStep";
                         });

}  // namespace
}  // namespace mu
