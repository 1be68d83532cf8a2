// Values and gradients against PyTorch's, in tests/reference/neural_ops.json (made by neural_ops.py
// beside it).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "common/exec/executor.h"
#include "coordinator/frontend/image_ops.h"
#include "coordinator/frontend/layers_attention.h"
#include "coordinator/frontend/layers_interaction.h"
#include "coordinator/frontend/layers_norm.h"
#include "coordinator/frontend/losses.h"
#include "coordinator/passes/trace.h"
#include "tests/testing/fake_factory.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using Json = nlohmann::json;
using Syms = std::vector<Sym>;

const Json& AllCases() {
  static const auto* const cases = [] {
    std::ifstream file("tests/reference/neural_ops.json");
    return new Json(Json::parse(file));
  }();
  return *cases;
}

Shape ShapeOf(const Json& dims) {
  Shape shape;
  for (const Json& dim : dims) shape.Append(dim.get<int64_t>());
  return shape;
}

// Sums of many terms are as exact as the largest of them.
void ExpectNear(absl::Span<const float> actual, const Json& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const Json& wanted : expected) {
    largest = std::max(largest, std::abs(wanted.get<double>()));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i].get<double>(), 1e-5 * (1 + largest))
        << what << "[" << i << "]";
  }
}

Sym Pooled(const Sym& x, bool max, int64_t size, int64_t stride, Padding padding) {
  const PoolOptions options{size, size, stride, stride, padding};
  return max ? MaxPool2d(x, options) : AvgPool2d(x, options);
}

std::map<std::string, std::function<Sym(const Syms&)>> Functions() {
  return {
      {"gelu", [](const Syms& x) { return Gelu(x[0]); }},
      {"silu", [](const Syms& x) { return Silu(x[0]); }},
      {"softplus", [](const Syms& x) { return Softplus(x[0]); }},
      {"leaky_relu", [](const Syms& x) { return LeakyRelu(x[0], 0.1f); }},
      {"softmax", [](const Syms& x) { return Softmax(x[0]); }},
      {"log_softmax", [](const Syms& x) { return LogSoftmax(x[0]); }},
      {"logsumexp", [](const Syms& x) { return LogSumExp(x[0]); }},
      {"softmax_cross_entropy", [](const Syms& x) { return SoftmaxCrossEntropy(x[0], x[1]); }},
      {"sparse_softmax_cross_entropy",
       [](const Syms& x) { return SparseSoftmaxCrossEntropy(x[0], x[1]); }},
      {"layer_norm", [](const Syms& x) { return LayerNormalize(x[0], x[1], x[2]); }},
      {"rms_norm", [](const Syms& x) { return RmsNormalize(x[0], x[1]); }},
      {"l2_normalize", [](const Syms& x) { return L2Normalize(x[0]); }},
      {"cosine_similarity", [](const Syms& x) { return CosineSimilarity(x[0], x[1]); }},
      {"pairwise_interactions", [](const Syms& x) { return PairwiseInteractions(x[0]); }},
      {"conv2d_valid", [](const Syms& x) { return Convolve2d(x[0], x[1]); }},
      {"conv2d_same",
       [](const Syms& x) { return Convolve2d(x[0], x[1], {.padding = Padding::kSame}); }},
      {"conv2d_strides",
       [](const Syms& x) {
         return Convolve2d(x[0], x[1], {.stride_height = 2, .padding = Padding::kSame});
       }},
      {"max_pool2d", [](const Syms& x) { return MaxPool2d(x[0]); }},
      {"max_pool2d_overlapping",
       [](const Syms& x) { return Pooled(x[0], true, 3, 2, Padding::kSame); }},
      {"avg_pool2d", [](const Syms& x) { return AvgPool2d(x[0]); }},
      {"avg_pool2d_same", [](const Syms& x) { return Pooled(x[0], false, 3, 2, Padding::kSame); }},
      {"batch_matmul", [](const Syms& x) { return BatchMatMul(x[0], x[1]); }},
      {"huber", [](const Syms& x) { return HuberLoss(x[0], x[1], 0.8f); }},
      {"mean_absolute_error", [](const Syms& x) { return MeanAbsoluteError(x[0], x[1]); }},
      {"quantile", [](const Syms& x) { return QuantileLoss(x[0], x[1], 0.8f); }},
      {"hinge", [](const Syms& x) { return HingeLoss(x[0], x[1]); }},
      {"focal", [](const Syms& x) { return FocalLoss(x[0], x[1]); }},
      {"bpr", [](const Syms& x) { return BprLoss(x[0], x[1]); }},
      {"sampled_softmax",
       [](const Syms& x) {
         return SampledSoftmaxLoss(x[0], x[1], x[2], {.negative_log_q = x[3]});
       }},
      {"in_batch_softmax",
       [](const Syms& x) { return InBatchSoftmaxLoss(x[0], x[1], {.temperature = 0.5f}); }},
  };
}

class PyTorchTest : public ::testing::Test {
 protected:
  static const Json& Case(const std::string& name) {
    for (const Json& one : AllCases()) {
      if (one.at("name") == name) return one;
    }
    ADD_FAILURE() << "no case " << name;
    return AllCases()[0];
  }

  absl::Span<float> ValuesOf(const std::string& name) {
    for (const auto& [id, known] : factory_.parameters.names) {
      if (known != name) continue;
      return id.first ? absl::MakeSpan(factory_.parameters.table(id.second).values)
                      : factory_.parameters.variable(id.second).flat<float>();
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }

  void Set(const std::string& name, const Json& floats, size_t begin = 0) {
    const absl::Span<float> values = ValuesOf(name);
    for (size_t i = 0; i < values.size(); ++i) values[i] = floats[begin + i].get<float>();
  }

  // Variables input_0, ... of the case's float inputs; the others are constants.
  Syms Inputs(const Json& one) {
    Syms inputs;
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (variables_[i].valid()) {
        inputs.push_back(Read(variables_[i]));
        continue;
      }
      const Json& input = one.at("inputs")[i];
      const auto ints = input.at("ints").get<std::vector<int64_t>>();
      inputs.push_back(ConstantTensor(Tensor::Of<int64_t>(ShapeOf(input.at("shape")), ints)));
    }
    return inputs;
  }
  void CreateInputs(const Json& one, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const Json& input = one.at("inputs")[i];
      variables_.emplace_back();
      if (!input.contains("floats")) continue;
      const std::string name = "input_" + std::to_string(i);
      variables_[i] =
          factory_.CreateVariable({.name = name, .shape = ShapeOf(input.at("shape"))}).value();
      Set(name, input.at("floats"));
    }
  }

  // Runs one step, compares the value, and leaves the gradients in factory_.parameters.
  void Run(const Json& one, const std::function<Sym(const Syms&)>& build) {
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function, Trace("f", [&](FunctionBuilder& f) {
                              f.Train();
                              const Sym y = build(Inputs(one));
                              f.Minimize(ReduceSum(Square(y) * 0.5f + y * 0.7f));
                              f.Return("y", y);
                            }));
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(function, factory_.parameters.routing()));
    Executor executor(compiled);
    std::vector<Tensor> returns;
    MU_ASSERT_OK(executor.RunStep({}, factory_.parameters, &returns));
    EXPECT_EQ(returns[0].shape(), ShapeOf(one.at("shape")));
    ExpectNear(returns[0].flat<float>(), one.at("output"), "output");
  }
  void ExpectGradient(const std::string& name, const Json& expected) {
    ExpectNear(factory_.parameters.gradients[name], expected, name);
  }

  testing::FakeFactory factory_;
  std::vector<Variable> variables_;  // by input; invalid for integers
};

class PyTorchFunctionTest : public PyTorchTest,
                            public ::testing::WithParamInterface<std::string> {};

TEST_P(PyTorchFunctionTest, ValueAndGradients) {
  const Json& one = Case(GetParam());
  CreateInputs(one, one.at("inputs").size());
  Run(one, Functions().at(GetParam()));
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (!one.at("inputs")[i].contains("gradient")) continue;
    ExpectGradient("input_" + std::to_string(i), one.at("inputs")[i].at("gradient"));
  }
}

std::vector<std::string> NamesOfFunctions() {
  std::vector<std::string> names;
  for (const auto& [name, function] : Functions()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, PyTorchFunctionTest, ::testing::ValuesIn(NamesOfFunctions()),
                         [](const auto& info) { return info.param; });

TEST_F(PyTorchTest, BatchNorm) {
  const Json& one = Case("batch_norm");
  CreateInputs(one, 1);
  MU_ASSERT_OK_AND_ASSIGN(const BatchNorm layer, BatchNorm::Create(factory_, "bn", 4));
  Set("bn/gamma", one.at("inputs")[1].at("floats"));
  Set("bn/beta", one.at("inputs")[2].at("floats"));
  Run(one, [&](const Syms& x) { return layer(x[0]); });
  ExpectGradient("input_0", one.at("inputs")[0].at("gradient"));
  ExpectGradient("bn/gamma", one.at("inputs")[1].at("gradient"));
  ExpectGradient("bn/beta", one.at("inputs")[2].at("gradient"));
}

TEST_F(PyTorchTest, GroupNorm) {
  const Json& one = Case("group_norm");
  CreateInputs(one, 1);
  MU_ASSERT_OK_AND_ASSIGN(const GroupNorm layer, GroupNorm::Create(factory_, "gn", 6, 3));
  Set("gn/gamma", one.at("inputs")[1].at("floats"));
  Set("gn/beta", one.at("inputs")[2].at("floats"));
  Run(one, [&](const Syms& x) { return layer(x[0]); });
  ExpectGradient("input_0", one.at("inputs")[0].at("gradient"));
  ExpectGradient("gn/gamma", one.at("inputs")[1].at("gradient"));
  ExpectGradient("gn/beta", one.at("inputs")[2].at("gradient"));
}

TEST_F(PyTorchTest, MultiHeadAttention) {
  const Json& one = Case("multi_head_attention");
  const Json& inputs = one.at("inputs");
  CreateInputs(one, 2);
  MU_ASSERT_OK_AND_ASSIGN(const MultiHeadAttention layer,
                          MultiHeadAttention::Create(factory_, "mha", 4, {.heads = 2}));
  const std::vector<std::string> parts = {"query", "key", "value", "output"};
  for (size_t i = 0; i < parts.size(); ++i) {
    Set("mha/" + parts[i] + "/kernel", inputs[2 + i].at("floats"));
    if (i < 3) Set("mha/" + parts[i] + "/bias", inputs[6].at("floats"), 4 * i);
  }
  Run(one, [&](const Syms& x) { return layer(x[0], {.keys = x[1], .causal = true}); });
  ExpectGradient("input_0", inputs[0].at("gradient"));
  std::vector<float> biases;
  for (size_t i = 0; i < parts.size(); ++i) {
    ExpectGradient("mha/" + parts[i] + "/kernel", inputs[2 + i].at("gradient"));
    const std::vector<float>& bias = factory_.parameters.gradients["mha/" + parts[i] + "/bias"];
    if (i < 3) biases.insert(biases.end(), bias.begin(), bias.end());
  }
  ExpectNear(biases, inputs[6].at("gradient"), "biases");
}

TEST_F(PyTorchTest, EmbeddingBags) {
  const std::pair<std::string, Combiner> combiners[] = {
      {"sum", Combiner::kSum}, {"mean", Combiner::kMean}, {"sqrtn", Combiner::kSqrtN}};
  for (const auto& [name, combiner] : combiners) {
    const Json& one = Case("embedding_bag_" + name);
    MU_ASSERT_OK_AND_ASSIGN(const EmbeddingTable table,
                            factory_.CreateEmbeddingTable({.name = name, .rows = 7, .dim = 3}));
    Set(name, one.at("inputs")[0].at("floats"));
    Run(one, [&, how = combiner](const Syms&) {
      const Sym values = ConstantTensor(Tensor::Of<int64_t>({6}, {4, 2, 4, 6, 2, 2}));
      const Sym splits = ConstantTensor(Tensor::Of<int32_t>({5}, {0, 3, 3, 4, 6}));
      return EmbeddingBag(table, values, splits, how);
    });
    ExpectGradient(name, one.at("inputs")[0].at("gradient"));
  }
}

TEST_F(PyTorchTest, CrossNetworkLayer) {
  const Json& one = Case("cross_network");
  const Json& inputs = one.at("inputs");
  CreateInputs(one, 1);
  MU_ASSERT_OK_AND_ASSIGN(const CrossNetwork layer,
                          CrossNetwork::Create(factory_, "cross", 3, {.layers = 2}));
  const std::vector<std::string> names = {"cross_0/kernel", "cross_0/bias", "cross_1/kernel",
                                          "cross_1/bias"};
  for (size_t i = 0; i < names.size(); ++i) Set(names[i], inputs[1 + i].at("floats"));
  Run(one, [&](const Syms& x) { return layer(x[0]); });
  ExpectGradient("input_0", inputs[0].at("gradient"));
  for (size_t i = 0; i < names.size(); ++i) ExpectGradient(names[i], inputs[1 + i].at("gradient"));
}

TEST_F(PyTorchTest, FmLayer) {
  const Json& one = Case("fm");
  const Json& inputs = one.at("inputs");
  CreateInputs(one, 3);
  MU_ASSERT_OK_AND_ASSIGN(const Fm layer, Fm::Create(factory_, "fm", 2, 3));
  Set("fm/numbers", inputs[3].at("floats"));
  Run(one, [&](const Syms& x) { return layer({x[0], x[1]}, x[2]); });
  for (int i = 0; i < 3; ++i)
    ExpectGradient("input_" + std::to_string(i), inputs[i].at("gradient"));
  ExpectGradient("fm/numbers", inputs[3].at("gradient"));
}

TEST(PyTorchCases, AllAreCompared) {
  const std::set<std::string> layers = {
      "batch_norm",         "group_norm",          "multi_head_attention", "embedding_bag_sum",
      "embedding_bag_mean", "embedding_bag_sqrtn", "cross_network",        "fm"};
  EXPECT_EQ(AllCases().size(), Functions().size() + layers.size());
  for (const Json& one : AllCases()) {
    const std::string name = one.at("name");
    EXPECT_EQ(Functions().count(name) + layers.count(name), 1u) << name;
  }
}

}  // namespace
}  // namespace mu
