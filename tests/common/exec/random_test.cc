// Random ops: what is drawn depends on the step, the op and the seed, and on nothing else.
#include <cmath>

#include "common/exec/compiled_function.h"
#include "common/exec/executor.h"
#include "tests/testing/fake_parameters.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::mu::testing::FakeParameterAccess;
using ::mu::testing::FloatAttr;
using ::mu::testing::GraphMaker;
using ::mu::testing::IntAttr;

// random_uniform of so many elements; what it returns in `step`.
std::vector<float> Draw(int64_t n, uint64_t step, int64_t seed, int64_t index) {
  GraphMaker g;
  const Tensor like(kFloat32, {n});
  g.Return("y", g.Op("random_uniform", {g.Constant(like)},
                     {{"seed", IntAttr(seed)}, {"index", IntAttr(index)}}));
  FakeParameterAccess access(0);
  const auto compiled = Compile(g.function(), access.routing());
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  Executor executor(*compiled);
  std::vector<Tensor> returns;
  StepInputs inputs;
  inputs.step = step;
  Batch batch;
  inputs.batch = &batch;
  MU_EXPECT_OK(executor.RunStep(inputs, access, &returns));
  const auto values = returns[0].flat<float>();
  return {values.begin(), values.end()};
}

TEST(RandomTest, TheSameStepDrawsTheSameAndOthersDrawOthers) {
  const std::vector<float> values = Draw(100, 7, 1, 0);
  EXPECT_EQ(Draw(100, 7, 1, 0), values);
  EXPECT_NE(Draw(100, 8, 1, 0), values);  // a constant in another op's place would be folded
  EXPECT_NE(Draw(100, 7, 2, 0), values);
  EXPECT_NE(Draw(100, 7, 1, 1), values);
  const std::vector<float> fewer = Draw(33, 7, 1, 0);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), values.begin()));
}

// The moments of a uniform, and no correlation between neighbours, steps and ops.
TEST(RandomTest, DrawsAreUniformAndIndependent) {
  constexpr int64_t kCount = 1 << 16;
  const std::vector<float> a = Draw(kCount, 3, 1, 0);
  const std::vector<float> b = Draw(kCount, 4, 1, 0);
  const std::vector<float> c = Draw(kCount, 3, 1, 1);
  double mean = 0, square = 0, neighbours = 0, steps = 0, ops = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_GE(a[i], 0);
    ASSERT_LT(a[i], 1);
    const double x = a[i] - 0.5;
    mean += x;
    square += x * x;
    neighbours += x * (a[(i + 1) % kCount] - 0.5);
    steps += x * (b[i] - 0.5);
    ops += x * (c[i] - 0.5);
  }
  // Six standard errors each.
  const double error = 6 / std::sqrt(static_cast<double>(kCount));
  EXPECT_NEAR(mean / kCount, 0, error * std::sqrt(1.0 / 12));
  EXPECT_NEAR(square / kCount, 1.0 / 12, error * std::sqrt(1.0 / 180));
  for (const double product : {neighbours, steps, ops}) {
    EXPECT_NEAR(product / kCount, 0, error / 12);
  }
}

TEST(RandomTest, DropoutKeepsTheMeanAndDropsItsShare) {
  constexpr int64_t kCount = 1 << 16;
  GraphMaker g;
  Tensor ones(kFloat32, {kCount});
  std::fill_n(ones.data<float>(), kCount, 1.0f);
  g.Return("y", g.Op("dropout", {g.Constant(ones)},
                     {{"rate", FloatAttr(0.25f)}, {"seed", IntAttr(5)}, {"index", IntAttr(0)}}));
  FakeParameterAccess access(0);
  MU_ASSERT_OK_AND_ASSIGN(const auto compiled, Compile(g.function(), access.routing()));
  Executor executor(compiled);
  Batch batch;
  StepInputs inputs;
  inputs.batch = &batch;
  std::vector<Tensor> returns;
  MU_ASSERT_OK(executor.RunStep(inputs, access, &returns));
  int64_t dropped = 0;
  for (const float value : returns[0].flat<float>()) {
    ASSERT_TRUE(value == 0 || value == 1.0f / 0.75f) << value;
    dropped += value == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / kCount, 0.25, 6 * std::sqrt(0.25 * 0.75 / kCount));
}

}  // namespace
}  // namespace mu
