// Penalties, clipping and weight decay: what a step pushes, against the formulas by hand.
#include <cmath>

#include "coordinator/passes/passes.h"
#include "tests/coordinator/autodiff/check_gradients.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// A variable w of 3 and a table t, of which a step looks up rows 1, 4 and 1 again. The loss is
// linear, so gradients are constants: of w 2, -3 and 0.5, of row 1 twice (1, -2), of row 4 (1, -2).
class AdjustGradientsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(w_, factory_.CreateVariable({.name = "w", .shape = {3}}));
    MU_ASSERT_OK_AND_ASSIGN(t_,
                            factory_.CreateEmbeddingTable(
                                {.name = "t", .rows = 6, .dim = 2, .initializer = Uniform{-1, 1}}));
    w() = {0.5f, 0, -2};
  }

  struct Pushed {
    std::vector<float> w, t;
  };
  Pushed Run(const MinimizeOptions& options) {
    const auto function = Trace("f", [&](FunctionBuilder& f) { Build(f, options); });
    EXPECT_TRUE(function.ok()) << function.status();
    if (!function.ok()) return {};
    auto compiled = Compile(*function, factory_.parameters.routing());
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    if (!compiled.ok()) return {};
    const auto values = factory_.parameters.variable(w_.proto().id()).flat<float>();
    std::copy(w_values_.begin(), w_values_.end(), values.begin());
    Executor executor(*compiled);
    std::vector<Tensor> returns;
    MU_EXPECT_OK(executor.RunStep({}, factory_.parameters, &returns));
    return {factory_.parameters.gradients["w"], factory_.parameters.gradients["t"]};
  }

  void Build(FunctionBuilder& f, const MinimizeOptions& options) {
    const Sym rows = EmbeddingLookup(t_, ConstantTensor(Tensor::Of<int64_t>({3}, {1, 4, 1})));
    const Sym slopes = ConstantTensor(Tensor::Of<float>({2}, {1, -2}));
    const Sym loss =
        ReduceSum(Multiply(w_, ConstantTensor(Tensor::Of<float>({3}, {2, -3, 0.5f})))) +
        ReduceSum(Multiply(rows, slopes));
    f.Minimize(loss, options);
  }

  std::vector<float>& w() { return w_values_; }
  const std::vector<float>& t() { return factory_.parameters.table(t_.proto().id()).values; }

  static void ExpectNear(const std::vector<float>& is, const std::vector<float>& wanted) {
    ASSERT_EQ(is.size(), wanted.size());
    for (size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(is[i], wanted[i], 1e-5) << i;
  }

  testing::FakeFactory factory_;
  Variable w_;
  EmbeddingTable t_;
  std::vector<float> w_values_;
  const std::vector<float> plain_w_ = {2, -3, 0.5f};
  const std::vector<float> plain_t_ = {0, 0, 2, -4, 0, 0, 0, 0, 1, -2, 0, 0};
  // Squares: 4 + 9 + 0.25 of w, 4 + 16 + 1 + 4 of t.
  const float norm_w_ = std::sqrt(13.25f), norm_t_ = 5, norm_ = std::sqrt(38.25f);
};

std::vector<float> Scaled(std::vector<float> values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

TEST_F(AdjustGradientsTest, WithoutOptionsGradientsStay) {
  const Pushed pushed = Run({});
  ExpectNear(pushed.w, plain_w_);
  ExpectNear(pushed.t, plain_t_);
}

TEST_F(AdjustGradientsTest, ByValue) {
  const Pushed pushed = Run({.gradients = {.clip_by_value = 1.5f}});
  ExpectNear(pushed.w, {1.5f, -1.5f, 0.5f});
  ExpectNear(pushed.t, {0, 0, 1.5f, -1.5f, 0, 0, 0, 0, 1, -1.5f, 0, 0});
}

TEST_F(AdjustGradientsTest, ByNormOfEach) {
  const Pushed pushed = Run({.gradients = {.clip_by_norm = 4}});
  ExpectNear(pushed.w, plain_w_);  // 3.64
  ExpectNear(pushed.t, Scaled(plain_t_, 4 / norm_t_));
  ExpectNear(Run({.gradients = {.clip_by_norm = 1}}).w, Scaled(plain_w_, 1 / norm_w_));
}

// A row's gradient is summed over all its lookups before it counts.
TEST_F(AdjustGradientsTest, ByGlobalNorm) {
  const Pushed pushed = Run({.gradients = {.clip_by_global_norm = 2}});
  ExpectNear(pushed.w, Scaled(plain_w_, 2 / norm_));
  ExpectNear(pushed.t, Scaled(plain_t_, 2 / norm_));
  ExpectNear(Run({.gradients = {.clip_by_global_norm = 7}}).t, plain_t_);
}

TEST_F(AdjustGradientsTest, PenaltiesAreOfTheRowsOfTheStep) {
  const Pushed pushed = Run({.gradients = {.l1 = 0.25f, .l2 = 0.5f}});
  ExpectNear(pushed.w, {2 + 0.25f + 0.25f, -3, 0.5f - 1 - 0.25f});
  std::vector<float> wanted = plain_t_;
  for (const size_t i : {2, 3, 8, 9}) {
    wanted[i] += 0.5f * t()[i] + (t()[i] > 0 ? 0.25f : -0.25f);
  }
  ExpectNear(pushed.t, wanted);
}

// Penalties are clipped, weight decay is not.
TEST_F(AdjustGradientsTest, InOrder) {
  const Pushed pushed = Run({.gradients = {.l2 = 100, .clip_by_value = 1, .weight_decay = 0.5f}});
  ExpectNear(pushed.w, {1 + 0.25f, -1, -1 - 1});
}

TEST_F(AdjustGradientsTest, NothingIsPulledTwice) {
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                            Build(b, {.gradients = {.l2 = 1, .weight_decay = 1}});
                          }));
  int pulls = 0, reads = 0;
  for (const pb::NodeProto& node : f.nodes()) {
    pulls += node.op() == "pull_rows";
    reads += node.op() == "variable_read";
  }
  EXPECT_EQ(pulls, 1);
  EXPECT_EQ(reads, 1);
}

// A gradient of zero has no direction, and must not become NaN.
TEST_F(AdjustGradientsTest, AGradientOfZero) {
  const Variable v = factory_.CreateVariable({.name = "v", .shape = {2}}).value();
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                            b.Minimize(
                                ReduceSum(v * 0.0f),
                                {.gradients = {.clip_by_norm = 1, .clip_by_global_norm = 1}});
                          }));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(f, factory_.parameters.routing()));
  Executor executor(compiled);
  std::vector<Tensor> returns;
  MU_ASSERT_OK(executor.RunStep({}, factory_.parameters, &returns));
  ExpectNear(factory_.parameters.gradients["v"], {0, 0});
}

// The squares of a float32 overflow from 1.8e19 on.
TEST_F(AdjustGradientsTest, LargeGradientsAreScaledAndDoNotVanish) {
  const Variable v = factory_.CreateVariable({.name = "v", .shape = {2}}).value();
  const Variable u = factory_.CreateVariable({.name = "u", .shape = {1}}).value();
  const auto run = [&](std::vector<float> slopes, const GradientOptions& options) -> absl::Status {
    factory_.parameters.gradients.clear();
    MU_ASSIGN_OR_RETURN(const pb::FunctionProto f, Trace("f", [&](FunctionBuilder& b) {
                          const Sym slope = ConstantTensor(Tensor::Of<float>({2}, slopes));
                          b.Minimize(ReduceSum(v * slope) + ReduceSum(u * 3.0f),
                                     {.gradients = options});
                        }));
    MU_ASSIGN_OR_RETURN(auto compiled, Compile(f, factory_.parameters.routing()));
    Executor executor(compiled);
    std::vector<Tensor> returns;
    return executor.RunStep({}, factory_.parameters, &returns);
  };
  auto& gradients = factory_.parameters.gradients;
  MU_ASSERT_OK(run({1e20f, 0}, {.clip_by_norm = 1}));
  ExpectNear(gradients["v"], {1, 0});
  ExpectNear(gradients["u"], {1});
  MU_ASSERT_OK(run({3e20f, -4e20f}, {.clip_by_global_norm = 5}));
  ExpectNear(gradients["v"], {3, -4});
  ExpectNear(Scaled(gradients["u"], 1e20f), {3});
  for (const GradientOptions& options :
       {GradientOptions{.clip_by_norm = 0.5f}, GradientOptions{.clip_by_global_norm = 0.5f}}) {
    // The norm is no float32.
    EXPECT_THAT(std::string(run({3e38f, 3e38f}, options).message()), HasSubstr("the gradient of "));
    // The norm is one, the scale is too small for one where denormal numbers are 0.
    if (run({3e38f, 0}, options).ok()) ExpectNear(gradients["v"], {0.5f, 0});
  }
}

TEST_F(AdjustGradientsTest, FrozenOnesGetNone) {
  EXPECT_TRUE(Run({.frozen = {"w"}}).w.empty());
  const Pushed pushed = Run({.frozen = {"t*"}, .gradients = {.clip_by_global_norm = 1}});
  EXPECT_TRUE(pushed.t.empty());
  ExpectNear(pushed.w, Scaled(plain_w_, 1 / norm_w_));
}

TEST_F(AdjustGradientsTest, Refusals) {
  const auto error = [&](const MinimizeOptions& first, const MinimizeOptions& second) {
    const auto traced = Trace("f", [&](FunctionBuilder& f) {
      Build(f, first);
      Build(f, second);
    });
    EXPECT_FALSE(traced.ok());
    EXPECT_THAT(std::string(traced.status().message()), HasSubstr("adjust_gradients_test.cc:"));
    return std::string(traced.status().message());
  };
  EXPECT_THAT(error({.gradients = {.l2 = 1}}, {}), HasSubstr("the same gradient options"));
  EXPECT_THAT(error({.gradients = {.l2 = -1}}, {}), HasSubstr("l2 must be a finite number"));
  EXPECT_THAT(error({.gradients = {.clip_by_norm = NAN}}, {}), HasSubstr("clip_by_norm must be"));
  EXPECT_THAT(error({.frozen = {"W"}}, {}), HasSubstr("no variable or table \"W\""));
  EXPECT_THAT(error({.frozen = {"w", "t"}}, {}), HasSubstr("not frozen"));
}

}  // namespace
}  // namespace mu
