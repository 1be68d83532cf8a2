// Of every kind, from the table: the bits do not depend on how rows are cut, stored or vectorised.
// What the arithmetic is compared with is in optimizer_reference_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/hash.h"
#include "psserver/optimizer/optimizer.h"
#include "tests/testing/example_optimizers.h"

namespace mu {
namespace {

using testing::ExampleOptimizer;
using testing::ExampleOptimizers;

std::vector<float> Random(size_t n, uint64_t seed) {
  SplitMix random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(random.Unit() * 2 - 1);
  return values;
}

// Values and slots of rows, as a variable has them.
struct Spans {
  Spans(const RowOptimizer& optimizer, size_t rows, size_t width)
      : values(Random(rows * width, 4)) {
    for (const SlotLayout& slot : optimizer.slots())
      slots.insert(slots.end(), rows * slot.width, slot.initial);
  }
  bool operator==(const Spans&) const = default;
  std::vector<float> values, slots;
};

StepRates RatesOf(const RowOptimizer& optimizer, uint64_t step, float scale = 1) {
  return optimizer.RatesOf({.rate_scale = scale, .job_step = step});
}

class RowOptimizerTest : public ::testing::TestWithParam<ExampleOptimizer> {
 protected:
  RowOptimizer Of(size_t width) const { return RowOptimizer(GetParam().proto, width); }
};

TEST_P(RowOptimizerTest, ChangesValuesAndSlots) {
  const RowOptimizer optimizer = Of(11);
  ASSERT_TRUE(optimizer.takes_gradients());
  Spans spans(optimizer, 2, 11);
  const Spans before = spans;
  const auto gradient = Random(22, 5);
  optimizer.ApplyRows(RatesOf(optimizer, 1), spans.values.data(), spans.slots.data(),
                      gradient.data(), 2);
  for (size_t i = 0; i < spans.values.size(); ++i) {
    EXPECT_TRUE(std::isfinite(spans.values[i])) << i;
    EXPECT_NE(spans.values[i], before.values[i]) << i;
  }
  for (size_t i = 0; i < spans.slots.size(); ++i) EXPECT_NE(spans.slots[i], before.slots[i]) << i;
}

// A value alone is computed without lanes.
TEST_P(RowOptimizerTest, CutAnywhereTheBitsAreTheSame) {
  constexpr size_t kRows = 37;
  const RowOptimizer one = Of(1);
  Spans whole(one, kRows, 1);
  const Spans start = whole;
  const auto gradient = Random(kRows, 5);
  for (uint64_t step = 1; step <= 3; ++step)
    one.ApplyRows(RatesOf(one, step), whole.values.data(), whole.slots.data(), gradient.data(),
                  kRows);
  for (size_t r = 0; r < kRows; ++r) {
    std::vector<float> row = {start.values[r]};
    for (size_t k = 0; k < one.slots().size(); ++k) row.push_back(start.slots[k * kRows + r]);
    for (uint64_t step = 1; step <= 3; ++step)
      one.ApplyRow(RatesOf(one, step), row.data(), &gradient[r]);
    EXPECT_EQ(row[0], whole.values[r]) << r;
    for (size_t k = 0; k < one.slots().size(); ++k)
      EXPECT_EQ(row[1 + k], whole.slots[k * kRows + r]) << r << " slot " << k;
  }
}

TEST_P(RowOptimizerTest, RowsWithTheirSlotsBehindThemAreSpans) {
  for (const size_t width : {1, 5, 8, 19}) {
    const size_t rows = 3;
    const RowOptimizer optimizer = Of(width);
    Spans spans(optimizer, rows, width);
    const size_t stride = width + optimizer.slot_floats();
    std::vector<float> table(rows * stride);
    for (size_t r = 0; r < rows; ++r) {
      float* to = std::copy_n(spans.values.data() + r * width, width, &table[r * stride]);
      for (const SlotLayout& slot : optimizer.slots())
        to = std::fill_n(to, slot.width, slot.initial);
    }
    for (uint64_t step = 1; step <= 3; ++step) {
      const auto gradient = Random(rows * width, step);
      const StepRates rates = RatesOf(optimizer, step, 0.5f);
      optimizer.ApplyRows(rates, spans.values.data(), spans.slots.data(), gradient.data(), rows);
      for (size_t r = 0; r < rows; ++r)
        optimizer.ApplyRow(rates, &table[r * stride], gradient.data() + r * width);
    }
    for (size_t r = 0; r < rows; ++r) {
      const float* row = &table[r * stride];
      for (size_t i = 0; i < width; ++i) EXPECT_EQ(*row++, spans.values[r * width + i]);
      const float* slot = spans.slots.data();
      for (const SlotLayout& layout : optimizer.slots()) {
        for (size_t i = 0; i < layout.width; ++i)
          EXPECT_EQ(*row++, slot[r * layout.width + i]) << width << " " << layout.name;
        slot += rows * layout.width;
      }
    }
  }
}

// But for FTRL, whose sums are of one rate (ftrl_test.cc).
TEST_P(RowOptimizerTest, AScaledRateIsThatRate) {
  if (GetParam().proto.has_ftrl()) return;
  const RowOptimizer full = Of(11), half(ScaleLearningRate(GetParam().proto, 0.5f), 11);
  Spans scaled(full, 2, 11), expected(full, 2, 11);
  for (uint64_t step = 1; step <= 3; ++step) {
    const auto gradient = Random(22, step);
    full.ApplyRows(RatesOf(full, step, 0.5f), scaled.values.data(), scaled.slots.data(),
                   gradient.data(), 2);
    half.ApplyRows(RatesOf(half, step), expected.values.data(), expected.slots.data(),
                   gradient.data(), 2);
  }
  EXPECT_TRUE(scaled == expected);
}

TEST_P(RowOptimizerTest, ZeroGradientsAndZeroRatesStayFinite) {
  const RowOptimizer optimizer = Of(11);
  Spans spans(optimizer, 2, 11);
  const std::vector<float> zeros(22), values = spans.values;
  optimizer.ApplyRows(RatesOf(optimizer, 1), spans.values.data(), spans.slots.data(), zeros.data(),
                      2);
  for (const float value : spans.values) EXPECT_TRUE(std::isfinite(value));
  const std::vector<float> before = spans.values;
  optimizer.ApplyRows(RatesOf(optimizer, 2, 0), spans.values.data(), spans.slots.data(),
                      Random(22, 1).data(), 2);
  EXPECT_EQ(spans.values, before) << "a rate of 0";
}

// Without a gradient a step is the optimizer's own decay and momentum. Nothing of that may be made
// from a sum over steps of other rates, which the rate of now would reinterpret.
TEST_P(RowOptimizerTest, AStepAfterAFallOfTheRateMovesByItsPartOfTheStep) {
  constexpr uint64_t kSteps = 500;
  constexpr float kFactor = 0.1f;
  const RowOptimizer optimizer = Of(11);
  Spans before(optimizer, 2, 11);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    optimizer.ApplyRows(RatesOf(optimizer, step), before.values.data(), before.slots.data(),
                        Random(22, step).data(), 2);
  }
  Spans whole = before, part = before;
  const std::vector<float> zeros(22);
  optimizer.ApplyRows(RatesOf(optimizer, kSteps + 1), whole.values.data(), whole.slots.data(),
                      zeros.data(), 2);
  optimizer.ApplyRows(RatesOf(optimizer, kSteps + 1, kFactor), part.values.data(),
                      part.slots.data(), zeros.data(), 2);
  for (size_t i = 0; i < before.values.size(); ++i) {
    const float x = before.values[i];
    const float rounding = 1e-6f * std::max({1.0f, std::abs(x), std::abs(whole.values[i])});
    EXPECT_NEAR(part.values[i] - x, kFactor * (whole.values[i] - x), rounding) << i;
  }
  EXPECT_EQ(part.slots, whole.slots);
}

TEST_P(RowOptimizerTest, TheStepsPlaceMattersToThoseThatNeedIt) {
  const RowOptimizer optimizer = Of(11);
  const auto gradient = Random(11, 5);
  Spans first(optimizer, 1, 11), thousandth(optimizer, 1, 11);
  optimizer.ApplyRows(RatesOf(optimizer, 1), first.values.data(), first.slots.data(),
                      gradient.data(), 1);
  optimizer.ApplyRows(RatesOf(optimizer, 1000), thousandth.values.data(), thousandth.slots.data(),
                      gradient.data(), 1);
  EXPECT_EQ(first == thousandth, !optimizer.needs_job_step());
}

INSTANTIATE_TEST_SUITE_P(All, RowOptimizerTest, ::testing::ValuesIn(ExampleOptimizers()),
                         [](const auto& info) { return info.param.name; });

TEST(RowOptimizer, OfNothingTakesNoGradients) {
  EXPECT_FALSE(RowOptimizer().takes_gradients());
  EXPECT_FALSE(RowOptimizer({}, 3).takes_gradients());
  EXPECT_EQ(RowOptimizer({}, 3).slot_floats(), 0u);
}

TEST(RowOptimizer, EveryKindIsAmongTheExamples) {
  for (const OptimizerKind& kind : AllOptimizers()) {
    size_t examples = 0;
    for (const ExampleOptimizer& example : ExampleOptimizers())
      examples += example.proto.kind_case() == kind.kind ? 1 : 0;
    EXPECT_GE(examples, 2u) << kind.name;
  }
}

// Checkpoints of before have this slot, whose bits may not change.
TEST(RowOptimizer, AdagradIsThePlainLoopForEveryLengthBitForBit) {
  muster::OptimizerProto proto;
  proto.mutable_adagrad()->set_learning_rate(0.05f);
  proto.mutable_adagrad()->set_initial_accumulator(0.1f);
  for (size_t n = 1; n < 40; ++n) {
    const RowOptimizer adagrad(proto, n);
    ASSERT_EQ(adagrad.slots().size(), 1u);
    EXPECT_EQ(adagrad.slots()[0].initial, 0.1f);
    auto value = Random(n, n), slots = std::vector<float>(n, 0.1f);
    auto expected = value, sums = slots;
    for (int step = 0; step < 5; ++step) {
      const auto gradient = Random(n, n + 100 + step);
      for (size_t i = 0; i < n; ++i) {
        sums[i] = sums[i] + gradient[i] * gradient[i];
        expected[i] -= 0.05f * gradient[i] / (std::sqrt(sums[i]) + 1e-10f);
      }
      adagrad.ApplyRows(adagrad.RatesOf({}), value.data(), slots.data(), gradient.data(), 1);
    }
    EXPECT_EQ(value, expected) << n;
    EXPECT_EQ(slots, sums) << n;
  }
}

// In lanes and alone: 11 values are eight and three.
TEST(LionTest, AMomentumOfZeroMovesNothing) {
  muster::OptimizerProto proto;
  proto.mutable_lion()->set_learning_rate(0.25f);
  const RowOptimizer lion(proto, 11);
  std::vector<float> value(11, 1.0f), slots(11, 0.0f), gradient, expected;
  for (int i = 0; i < 11; ++i) {
    gradient.push_back(std::vector<float>{0.0f, 1e-30f, -3.0f, -0.0f}[i % 4]);
    expected.push_back(std::vector<float>{1.0f, 0.75f, 1.25f, 1.0f}[i % 4]);
  }
  lion.ApplyRows(lion.RatesOf({}), value.data(), slots.data(), gradient.data(), 1);
  EXPECT_EQ(value, expected);
}

}  // namespace
}  // namespace mu
