// Compares the gradients that a step pushes with finite differences of its loss.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "common/base/hash.h"
#include "common/exec/executor.h"
#include "coordinator/passes/trace.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {

inline Dataset CriteoDataset() {
  pb::DatasetProto proto;
  proto.set_id(1);
  proto.set_name("criteo");
  proto.mutable_criteo_tsv()->set_hash_buckets(7);
  return Dataset(std::move(proto));
}

// label [records], dense [records, 13], ids [records, 26] below 7.
inline Batch CriteoBatch(int64_t records, uint64_t seed = 5) {
  SplitMix random(seed);
  Batch batch;
  batch.records = static_cast<uint32_t>(records);
  batch.names = {"label", "dense", "ids"};
  batch.columns = {Tensor(kFloat32, {records}), Tensor(kFloat32, {records, 13}),
                   Tensor(kInt64, {records, 26})};
  for (float& value : batch.columns[0].flat<float>()) value = static_cast<float>(random.Below(2));
  for (float& value : batch.columns[1].flat<float>())
    value = static_cast<float>(random.Unit() * 2 - 1);
  for (int64_t& value : batch.columns[2].flat<int64_t>())
    value = static_cast<int64_t>(random.Below(7));
  return batch;
}

class GradientChecker {
 public:
  GradientChecker(const pb::FunctionProto& function, testing::RecordingParameters& parameters,
                  const Batch* batch)
      : parameters_(parameters), batch_(batch) {
    const auto compiled = Compile(function, parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (compiled.ok()) executor_ = std::make_unique<Executor>(*compiled);
  }

  // `values` are the parameters called `name`; they are as before when it returns. What the step
  // pushed for them must be the loss's derivative, up to `slack` and a hundredth.
  void Check(const std::string& name, absl::Span<float> values, double slack = 3e-3) {
    if (executor_ == nullptr) return;
    Loss();
    std::vector<float> pushed = parameters_.gradients[name];
    if (pushed.empty()) pushed.assign(values.size(), 0.0f);
    ASSERT_EQ(pushed.size(), values.size()) << name;
    constexpr float kStep = 1.0f / 128;
    for (size_t i = 0; i < values.size(); ++i) {
      const float before = values[i];
      values[i] = before + kStep;
      const double above = Loss();
      values[i] = before - kStep;
      const double below = Loss();
      values[i] = before;
      const double expected = (above - below) / (2.0 * kStep);
      EXPECT_NEAR(pushed[i], expected, slack + 1e-2 * std::abs(expected))
          << name << "[" << i << "]";
    }
  }

 private:
  double Loss() {
    StepInputs inputs;
    inputs.batch = batch_;
    std::vector<Tensor> returns;
    const absl::Status status = executor_->RunStep(inputs, parameters_, &returns);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? *returns[0].data<float>() : 0.0;
  }

  testing::RecordingParameters& parameters_;
  const Batch* const batch_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace mu
