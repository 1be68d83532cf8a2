// A job of numbers whose evaluation says how far its training has come.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/training/trainer.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/numbers_file.h"

namespace mu::testing {

inline constexpr int64_t kRecords = 100, kBatch = 10, kSum = kRecords * (kRecords - 1) / 2;

class EvaluatedJobTest : public ::testing::Test {
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
    MU_ASSERT_OK_AND_ASSIGN(data_, c().CreateDataset(numbers("train").Shuffle(50)));
    MU_ASSERT_OK_AND_ASSIGN(test_, c().CreateDataset(numbers("test").Epochs(1)));
    MU_ASSERT_OK_AND_ASSIGN(sum_, c().CreateVariable({.name = "sum", .dtype = kInt64}));
    MU_ASSERT_OK_AND_ASSIGN(step_, c().DefineFunction("step", [&](FunctionBuilder& f) {
      const Sym id = f.NextBatch(data_)["id"];
      AssignAdd(sum_, ReduceSum(id));
      f.Return("loss", ReduceMean(Cast(id, kFloat32)));
    }));
    // Of a label that is 0: how far training has come. Beyond `turn_` it goes back.
    MU_ASSERT_OK_AND_ASSIGN(forward_, c().DefineFunction("forward", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
      const Sym off = Cast(Read(sum_), kFloat32) / static_cast<float>(kSum) - turn_;
      f.Return("prediction", id * 0.0f + Maximum(off, off * -1.0f));
      f.Return("label", id * 0.0f);
    }));
  }
  // The same, half a second or more for each batch.
  absl::StatusOr<Function> DefineSlow() {
    const Tensor mean =
        Tensor::Of<float>(Shape({1000, 1000}), std::vector<float>(1000 * 1000, 1e-3f));
    return c().DefineFunction("slow", [&](FunctionBuilder& f) {
      const Sym id = Cast(f.NextBatch(test_)["id"], kFloat32);
      Sym work = Reshape(id, {-1, 1}) *
                 ConstantTensor(Tensor::Of<float>(Shape({1000}), std::vector<float>(1000, 0.0f)));
      const Sym matrix = ConstantTensor(mean);
      for (int i = 0; i < 1000; ++i) work = MatMul(work, matrix);
      f.Return("prediction", ReduceMean(work, {1}));
      f.Return("label", id * 0.0f);
    });
  }
  // Trains as `fit` says until it is stopped, in the evaluation beside training that begins with
  // step 10. `stopped` is called with the trainer before that ends.
  void StopInAnEvaluation(FitOptions fit, const std::function<void(Trainer&)>& stopped) {
    std::atomic<int> stop = 0;
    TrainerOptions options = Options();
    MU_ASSERT_OK_AND_ASSIGN(options.evaluation->function, DefineSlow());
    options.callbacks.on_step = [&](const TrainEvent& event) { stop = event.steps > 11 ? 1 : 0; };
    Trainer trainer(&c(), std::move(options));
    fit.steps_per_function = 1;
    fit.stop = &stop;
    MU_ASSERT_OK_AND_ASSIGN(const FitResult result, trainer.Fit(fit));
    EXPECT_TRUE(result.train.stopped);
    EXPECT_THAT(result.evaluations, ::testing::IsEmpty()) << "it had only begun";
    stopped(trainer);
  }
  void Restart() {
    cluster_->DestroyCoordinator();
    MU_ASSERT_OK(cluster_->StartCoordinator());
    Create();
  }
  TrainerOptions Options() {
    return {.step = step_,
            .data = data_,
            .evaluation = EvaluationSpec{.function = forward_,
                                         .data = test_,
                                         .outputs = ForwardOf(Task::kRegression),
                                         .metrics = {"mae"}},
            .checkpoints = CheckpointerOptions{.directory = cluster_->directory() + "/checkpoints",
                                               .every = absl::InfiniteDuration()}};
  }
  // Trains two epochs; the checkpoint says that an evaluation of ckpt-00000000, which is not there,
  // was under way.
  void TrainWithAnEvaluationPending() {
    Trainer trainer(&c(), Options());
    MU_ASSERT_OK(trainer.Fit({.epochs = 2}).status());
    TrainingHistory history;
    history.SetPending(PendingEvaluation{"ckpt-00000000", 10, 1});
    c().SetUserState(history.ToString());
    MU_ASSERT_OK(trainer.Save().status());
  }
  Coordinator& c() { return cluster_->coordinator(); }
  int64_t Sum() {
    const auto value = c().Read(sum_);
    MU_EXPECT_OK(value.status());
    return value.ok() ? *value->data<int64_t>() : -1;
  }

  std::unique_ptr<TestCluster> cluster_;
  Dataset data_, test_;
  Function step_, forward_;
  Variable sum_;
  float turn_ = 3;  // epochs
};

}  // namespace mu::testing
