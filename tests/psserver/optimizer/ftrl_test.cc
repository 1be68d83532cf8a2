// FTRL while the learning rate varies: its alpha stays, and its gradients are scaled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/hash.h"
#include "common/optimizer/schedule.h"
#include "psserver/optimizer/optimizer.h"

namespace mu {
namespace {

std::vector<float> Random(size_t n, uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.Unit() * 2 - 1);
  return values;
}

// Every length: eight at a time and the rest one by one. Without a factor these are the bits that
// checkpoints of before continue.
TEST(FtrlTest, IsThePlainLoopWithScaledGradientsBitForBit) {
  constexpr float kAlpha = 0.05f, kBeta = 0.5f, kL1 = 0.25f, kL2 = 0.125f, kInitial = 0.1f;
  muster::OptimizerProto proto;
  proto.mutable_ftrl()->set_learning_rate(kAlpha);
  proto.mutable_ftrl()->set_beta(kBeta);
  proto.mutable_ftrl()->set_l1(kL1);
  proto.mutable_ftrl()->set_l2(kL2);
  proto.mutable_ftrl()->set_initial_accumulator(kInitial);
  for (size_t width = 1; width < 20; ++width) {
    const RowOptimizer ftrl(proto, width);
    std::vector<float> value(width), slots(width, 0.0f);
    slots.insert(slots.end(), width, kInitial);
    std::vector<float> row = value, x = value, z = value, n(width, kInitial);
    row.insert(row.end(), slots.begin(), slots.end());
    for (uint64_t step = 1; step <= 6; ++step) {
      const float c = std::vector<float>{1, 0.3f, 0.7f}[step % 3];
      const std::vector<float> gradient = Random(width, step);
      for (size_t i = 0; i < width; ++i) {
        const float g = gradient[i], sum = n[i] + g * g;
        const float sigma = (std::sqrt(sum) - std::sqrt(n[i])) / kAlpha;
        z[i] = z[i] + (c * g - sigma * x[i]);
        n[i] = sum;
        const float beyond = z[i] - std::max(std::min(z[i], kL1), -kL1);
        x[i] = (0.0f - beyond) / ((kBeta + std::sqrt(sum)) / kAlpha + kL2);
      }
      const StepRates rates = ftrl.RatesOf({.rate_scale = c, .job_step = step});
      ftrl.ApplyRows(rates, value.data(), slots.data(), gradient.data(), 1);
      ftrl.ApplyRow(rates, row.data(), gradient.data());
    }
    EXPECT_EQ(value, x) << width;
    EXPECT_EQ(std::vector<float>(slots.begin(), slots.begin() + width), z) << width;
    EXPECT_EQ(std::vector<float>(slots.begin() + width, slots.end()), n) << width;
    value.insert(value.end(), slots.begin(), slots.end());
    EXPECT_EQ(row, value) << width;
  }
}

// A step moves a value by its factor's part of what the whole rate moves it.
TEST(FtrlTest, TheFactorScalesTheMove) {
  constexpr size_t kWidth = 11;
  muster::OptimizerProto proto;
  proto.mutable_ftrl()->set_learning_rate(0.1f);
  const RowOptimizer ftrl(proto, kWidth);
  std::vector<float> start(3 * kWidth);
  for (uint64_t step = 1; step <= 100; ++step)
    ftrl.ApplyRow(ftrl.RatesOf({}), start.data(), Random(kWidth, step).data());
  std::vector<float> whole = start, part = start;
  const std::vector<float> gradient = Random(kWidth, 101);
  ftrl.ApplyRow(ftrl.RatesOf({}), whole.data(), gradient.data());
  ftrl.ApplyRow(ftrl.RatesOf({.rate_scale = 0.25f}), part.data(), gradient.data());
  for (size_t i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(part[i] - start[i], 0.25f * (whole[i] - start[i]), 1e-6f) << i;
    EXPECT_EQ(part[2 * kWidth + i], whole[2 * kWidth + i]) << "n has the whole gradient";
  }
}

// Bit by bit, where z and n give the values already: also within l1, where they are 0.
TEST(FtrlTest, AdoptsOnlyWhatItHasNotMade) {
  constexpr size_t kWidth = 11;
  muster::OptimizerProto proto;
  proto.mutable_ftrl()->set_learning_rate(0.1f);
  proto.mutable_ftrl()->set_l1(0.5f);
  proto.mutable_ftrl()->set_l2(0.25f);
  const RowOptimizer ftrl(proto, kWidth);
  std::vector<float> row(3 * kWidth), gradient;
  for (size_t i = 0; i < kWidth; ++i) gradient.push_back(0.02f * static_cast<float>(i));
  for (int step = 0; step < 5; ++step) ftrl.ApplyRow(ftrl.RatesOf({}), row.data(), gradient.data());
  const auto zeros = std::count(row.begin(), row.begin() + kWidth, 0.0f);
  EXPECT_GT(zeros, 0);
  EXPECT_LT(zeros, static_cast<int>(kWidth));
  const std::vector<float> made = row;
  ftrl.AdoptRow(row.data());
  EXPECT_EQ(row, made);
  for (size_t i = 0; i < kWidth; ++i) row[i] = 0.1f * (static_cast<float>(i) - 5);
  const std::vector<float> given = row;
  ftrl.AdoptRow(row.data());
  const std::vector<float> none(kWidth);
  ftrl.ApplyRow(ftrl.RatesOf({}), row.data(), none.data());
  for (size_t i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(row[i], given[i], 1e-6f) << i;
    EXPECT_EQ(row[2 * kWidth + i], given[2 * kWidth + i]) << i;
  }
}

// A quadratic around `optimum`, whose gradients are noisy; the rate ends at 0.
TEST(FtrlTest, ACosineEndsNearTheOptimum) {
  constexpr size_t kWidth = 11;
  constexpr uint64_t kSteps = 2000;
  muster::OptimizerProto proto;
  proto.mutable_ftrl()->set_learning_rate(0.2f);
  muster::ScheduleProto schedule;
  schedule.mutable_cosine()->set_steps(kSteps);
  const RowOptimizer ftrl(proto, kWidth);
  std::vector<float> row(3 * kWidth), optimum;
  for (size_t i = 0; i < kWidth; ++i) optimum.push_back(1 - 0.2f * static_cast<float>(i));
  for (uint64_t step = 0; step < kSteps; ++step) {
    std::vector<float> gradient = Random(kWidth, step);
    for (size_t i = 0; i < kWidth; ++i) gradient[i] += row[i] - optimum[i];
    const float scale = RateScale(schedule, /*warmup_steps=*/0, step);
    ftrl.ApplyRow(ftrl.RatesOf({.rate_scale = scale, .job_step = step + 1}), row.data(),
                  gradient.data());
  }
  for (size_t i = 0; i < kWidth; ++i) EXPECT_NEAR(row[i], optimum[i], 0.1f) << i;
}

}  // namespace
}  // namespace mu
