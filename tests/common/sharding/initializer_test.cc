#include "common/sharding/initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "common/base/status.h"
#include "common/tensor/dtype.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::HasCode;

pb::InitializerProto Normal(float mean, float stddev, uint64_t seed) {
  pb::InitializerProto proto;
  proto.mutable_normal()->set_mean(mean);
  proto.mutable_normal()->set_stddev(stddev);
  proto.set_seed(seed);
  return proto;
}

pb::InitializerProto Uniform(float low, float high, uint64_t seed) {
  pb::InitializerProto proto;
  proto.mutable_uniform()->set_low(low);
  proto.mutable_uniform()->set_high(high);
  proto.set_seed(seed);
  return proto;
}

std::vector<float> Values(const RowInitializer& initializer, uint64_t rows, size_t columns) {
  std::vector<float> values(rows * columns);
  for (uint64_t r = 0; r < rows; ++r) initializer.FillRow(r, values.data() + r * columns, columns);
  return values;
}

TEST(InitializerTest, DefaultIsZeroAndConstantIsConstant) {
  for (float v : Values(RowInitializer(), 3, 4)) EXPECT_EQ(v, 0.0f);
  pb::InitializerProto proto;
  proto.mutable_constant()->set_value(2.5f);
  for (float v : Values(RowInitializer(proto, "x"), 3, 4)) EXPECT_EQ(v, 2.5f);
}

TEST(InitializerTest, NormalHasItsMomentsAndTails) {
  const auto values = Values(RowInitializer(Normal(1.0f, 2.0f, 7), "x"), 20000, 10);
  double sum = 0, squares = 0;
  float least = 0, most = 0;
  for (float v : values) {
    sum += v;
    squares += (v - 1.0) * (v - 1.0);
    least = std::min(least, v);
    most = std::max(most, v);
  }
  EXPECT_NEAR(sum / values.size(), 1.0, 0.02);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 2.0, 0.02);
  EXPECT_LT(least, -4.0f);
  EXPECT_GT(most, 6.0f);
}

TEST(InitializerTest, UniformStaysInItsRangeAndFillsIt) {
  const auto values = Values(RowInitializer(Uniform(-0.5f, 1.5f, 7), "x"), 2000, 10);
  double sum = 0;
  for (float v : values) {
    ASSERT_GE(v, -0.5f);
    ASSERT_LE(v, 1.5f);
    sum += v;
  }
  EXPECT_NEAR(sum / values.size(), 0.5, 0.02);
}

TEST(InitializerTest, DependsOnSeedNameRowAndColumnOnly) {
  const auto base = Values(RowInitializer(Normal(0, 1, 7), "x"), 100, 8);
  EXPECT_EQ(base, Values(RowInitializer(Normal(0, 1, 7), "x"), 100, 8));
  EXPECT_NE(base, Values(RowInitializer(Normal(0, 1, 8), "x"), 100, 8));
  EXPECT_NE(base, Values(RowInitializer(Normal(0, 1, 7), "y"), 100, 8));
  EXPECT_GT(std::set<float>(base.begin(), base.end()).size(), 780u);
  // Fewer columns are the same columns.
  std::vector<float> row(3);
  RowInitializer(Normal(0, 1, 7), "x").FillRow(42, row.data(), row.size());
  for (int c = 0; c < 3; ++c) EXPECT_EQ(row[c], base[42 * 8 + c]);
}

// Computed by another program. These bits must never change: checkpoints do not hold rows that were
// never touched.
TEST(InitializerTest, GoldenBits) {
  float values[2];
  RowInitializer(Normal(0, 1, 1), "items").FillRow(12345, values, 2);
  EXPECT_EQ(values[0], -0x1.3e2ee20000000p-2f);
  EXPECT_EQ(values[1], 0x1.9051fa0000000p-4f);
}

TEST(InitializerTest, ChecksNumbersAndTypes) {
  MU_EXPECT_OK(CheckInitializer(Normal(0, 1, 1), kFloat32));
  EXPECT_THAT(CheckInitializer(Normal(0, NAN, 1), kFloat32),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckInitializer(Uniform(-3e38f, 3e38f, 1), kFloat32),
              HasCode(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckInitializer(Normal(0, 1, 1), kInt64),
              HasCode(absl::StatusCode::kInvalidArgument));
  pb::InitializerProto constant;
  constant.mutable_constant()->set_value(1.5f);
  EXPECT_THAT(CheckInitializer(constant, kInt32), HasCode(absl::StatusCode::kInvalidArgument));
  constant.mutable_constant()->set_value(-4.0f);
  MU_EXPECT_OK(CheckInitializer(constant, kInt32));
}

}  // namespace
}  // namespace mu
