#include "psserver/optimizer/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "common/base/hash.h"

namespace mu {
namespace {

std::vector<float> Random(size_t n, uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.Unit() * 2 - 1);
  return values;
}

muster::OptimizerProto Adagrad(float rate, float initial, float epsilon) {
  muster::OptimizerProto proto;
  proto.mutable_adagrad()->set_learning_rate(rate);
  proto.mutable_adagrad()->set_initial_accumulator(initial);
  proto.mutable_adagrad()->set_epsilon(epsilon);
  return proto;
}

muster::OptimizerProto Sgd(float rate) {
  muster::OptimizerProto proto;
  proto.mutable_sgd()->set_learning_rate(rate);
  return proto;
}

TEST(OptimizerTest, SgdIsThePlainLoopForEveryLength) {
  const RowOptimizer sgd(Sgd(0.1f));
  EXPECT_EQ(sgd.slots(), 0u);
  for (size_t n = 0; n < 40; ++n) {
    auto value = Random(n, n), gradient = Random(n, n + 100);
    auto expected = value;
    for (size_t i = 0; i < n; ++i) expected[i] -= 0.1f * gradient[i];
    sgd.Apply(value.data(), nullptr, gradient.data(), n);
    EXPECT_EQ(value, expected) << n;
  }
}

TEST(OptimizerTest, AdagradIsThePlainLoopForEveryLengthBitForBit) {
  const RowOptimizer adagrad(Adagrad(0.05f, 0.1f, 0));
  EXPECT_EQ(adagrad.slots(), 1u);
  EXPECT_EQ(adagrad.slot_initial(0), 0.1f);
  for (size_t n = 0; n < 40; ++n) {
    auto value = Random(n, n), slots = std::vector<float>(n, 0.1f);
    auto expected = value, sums = slots;
    for (int step = 0; step < 5; ++step) {
      const auto gradient = Random(n, n + 100 + step);
      for (size_t i = 0; i < n; ++i) {
        sums[i] = sums[i] + gradient[i] * gradient[i];
        expected[i] -= 0.05f * gradient[i] / (std::sqrt(sums[i]) + 1e-10f);
      }
      adagrad.Apply(value.data(), slots.data(), gradient.data(), n);
    }
    EXPECT_EQ(value, expected) << n;
    EXPECT_EQ(slots, sums) << n;
  }
}

TEST(OptimizerTest, AScaledRateIsThatRateAndLeavesTheSumsAlone) {
  const size_t n = 11;
  const auto gradient = Random(n, 5);
  for (const bool adaptive : {false, true}) {
    const RowOptimizer full =
        adaptive ? RowOptimizer(Adagrad(0.5f, 0.1f, 0)) : RowOptimizer(Sgd(0.5f));
    const RowOptimizer half =
        adaptive ? RowOptimizer(Adagrad(0.25f, 0.1f, 0)) : RowOptimizer(Sgd(0.25f));
    auto scaled = Random(n, 4), scaled_slots = std::vector<float>(n, 0.1f);
    auto expected = scaled, slots = scaled_slots;
    full.Apply(scaled.data(), scaled_slots.data(), gradient.data(), n, 0.5f);
    half.Apply(expected.data(), slots.data(), gradient.data(), n);
    EXPECT_EQ(scaled, expected);
    EXPECT_EQ(scaled_slots, slots);
  }
}

TEST(OptimizerTest, CutAnywhereTheBitsAreTheSame) {
  const RowOptimizer adagrad(Adagrad(0.05f, 0.1f, 1e-3f));
  const size_t n = 37;
  const auto gradient = Random(n, 5);
  auto whole = Random(n, 4), whole_slots = std::vector<float>(n, 0.1f);
  const auto start = whole, start_slots = whole_slots;
  adagrad.Apply(whole.data(), whole_slots.data(), gradient.data(), n);
  for (size_t cut = 0; cut <= n; ++cut) {
    auto value = start, slots = start_slots;
    adagrad.Apply(value.data(), slots.data(), gradient.data(), cut);
    adagrad.Apply(value.data() + cut, slots.data() + cut, gradient.data() + cut, n - cut);
    ASSERT_EQ(value, whole) << cut;
    ASSERT_EQ(slots, whole_slots) << cut;
  }
}

TEST(OptimizerTest, RowsHoldTheirSlotsBehindTheValues) {
  const RowOptimizer adagrad(Adagrad(0.5f, 0, 0));
  std::vector<float> row = {1, 2, 0, 0};
  const std::vector<float> gradient = {3, -4};
  adagrad.ApplyRow(row.data(), gradient.data(), 2);
  EXPECT_EQ(row, (std::vector<float>{0.5f, 2.5f, 9, 16}));
}

TEST(OptimizerTest, AZeroGradientChangesNothing) {
  const RowOptimizer adagrad(Adagrad(0.5f, 0, 0));
  std::vector<float> row = {1, 2, 0, 0};
  adagrad.ApplyRow(row.data(), std::vector<float>{0, 0}.data(), 2);
  EXPECT_EQ(row, (std::vector<float>{1, 2, 0, 0}));
}

TEST(OptimizerTest, AllFiniteFindsEachBadValueAtEachPlace) {
  for (size_t n = 1; n < 20; ++n) {
    std::vector<float> values(n, -3.4e38f);
    EXPECT_TRUE(AllFinite(values.data(), n));
    for (size_t i = 0; i < n; ++i) {
      for (float bad :
           {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
            std::numeric_limits<float>::quiet_NaN()}) {
        values[i] = bad;
        EXPECT_FALSE(AllFinite(values.data(), n)) << n << " " << i;
      }
      values[i] = 1e-45f;
    }
  }
  EXPECT_TRUE(AllFinite(nullptr, 0));
}

}  // namespace
}  // namespace mu
