// 100 steps of every kind against PyTorch or the paper's formula:
// tests/reference/optimizer_values.py made the numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <vector>

#include "google/protobuf/util/json_util.h"
#include "nlohmann/json.hpp"
#include "psserver/optimizer/optimizer.h"
#include "tests/testing/example_optimizers.h"

namespace mu {
namespace {

constexpr size_t kRows = 4, kDim = 11;
constexpr uint64_t kSteps = 100;
constexpr float kTolerance = 1e-5f;

// As in the script.
uint32_t Noise(uint64_t step, uint64_t i) {
  uint32_t x = static_cast<uint32_t>(step * 1000003 + i * 7919 + 12345) * 2654435761u;
  x = (x ^ (x >> 15)) * 2246822519u;
  return (x ^ (x >> 13)) >> 8;
}
float Number(uint64_t step, uint64_t i) {
  return static_cast<float>(Noise(step, i)) / 16777216.0f - 0.5f;
}
std::vector<float> GradientOf(uint64_t step) {
  std::vector<float> gradient(kRows * kDim);
  for (size_t i = 0; i < gradient.size(); ++i)
    gradient[i] = Number(step, i) + (i % 3 == 0 ? 0.25f : 0.0f);
  return gradient;
}
std::vector<size_t> Touched(uint64_t step) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < kRows; ++row) {
    if (Noise(step, 1000 + row) % 3 != 0) rows.push_back(row);
  }
  if (rows.empty()) rows.push_back(0);
  return rows;
}

struct Case {
  std::string name;
  muster::OptimizerProto optimizer;
  bool rows = false;
  std::vector<float> values;

  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::ifstream file(MUSTER_OPTIMIZER_VALUES);
  const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return cases;
  for (const auto& in : json["cases"]) {
    Case made{in["name"].get<std::string>(),
              {},
              in["rows"].get<bool>(),
              in["values"].get<std::vector<float>>()};
    if (!google::protobuf::util::JsonStringToMessage(in["optimizer"].dump(), &made.optimizer).ok())
      return {};
    cases.push_back(std::move(made));
  }
  return cases;
}

class OptimizerReferenceTest : public ::testing::TestWithParam<Case> {};

TEST_P(OptimizerReferenceTest, ValuesAfterAHundredSteps) {
  const RowOptimizer optimizer(GetParam().optimizer, kDim);
  // Rows of a table, or a variable of that shape.
  const size_t stride = kDim + optimizer.slot_floats();
  std::vector<float> table(kRows * stride), values(kRows * kDim), slots;
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = Number(0, i);
    table[i / kDim * stride + i % kDim] = values[i];
  }
  for (size_t row = 0; row < kRows; ++row) {
    float* slot = &table[row * stride + kDim];
    for (const SlotLayout& layout : optimizer.slots())
      slot = std::fill_n(slot, layout.width, layout.initial);
  }
  for (const SlotLayout& layout : optimizer.slots())
    slots.insert(slots.end(), kRows * layout.width, layout.initial);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const std::vector<float> gradient = GradientOf(step);
    const StepRates rates = optimizer.RatesOf({.job_step = step});
    if (GetParam().rows) {
      for (const size_t row : Touched(step))
        optimizer.ApplyRow(rates, &table[row * stride], &gradient[row * kDim]);
    } else {
      optimizer.ApplyRows(rates, values.data(), slots.data(), gradient.data(), kRows);
    }
  }
  ASSERT_EQ(GetParam().values.size(), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const float ours = GetParam().rows ? table[i / kDim * stride + i % kDim] : values[i];
    const float expected = GetParam().values[i];
    EXPECT_NEAR(ours, expected, kTolerance * std::max(1.0f, std::abs(expected))) << i;
    // Not only near: exactly 0 where L1 makes it so.
    EXPECT_EQ(ours == 0, expected == 0) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerReferenceTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// Dense and on rows, and in each way in which the kind keeps other slots.
TEST(OptimizerReference, EveryKindHasValues) {
  std::set<std::string> dense, rows, slots;
  for (const Case& known : Cases()) {
    (known.rows ? rows : dense).insert(OptimizerName(known.optimizer));
    slots.insert(DescribeOptimizer(known.optimizer));
  }
  for (const OptimizerKind& kind : AllOptimizers()) {
    EXPECT_TRUE(dense.contains(kind.name)) << kind.name;
    EXPECT_TRUE(rows.contains(kind.name)) << kind.name;
  }
  for (const auto& example : testing::ExampleOptimizers())
    EXPECT_TRUE(slots.contains(DescribeOptimizer(example.proto))) << example.name;
}

}  // namespace
}  // namespace mu
