#include "coordinator/frontend/image_ops.h"
#include "coordinator/frontend/losses.h"
#include "coordinator/frontend/neural_ops.h"
#include "tests/coordinator/autodiff/check_cases.h"

namespace mu {
namespace {

using Vars = std::vector<Variable>;

void Add(std::vector<CheckCase>& cases, const std::string& op, const std::string& name,
         std::vector<CheckInput> variables, std::function<Sym(const Vars& v)> build) {
  cases.push_back({op, name, std::move(variables),
                   [build](const Vars& v, const BatchRef&) { return build(v); }});
}

void AddUnary(std::vector<CheckCase>& cases, const std::string& op, const std::string& name,
              Sym (*f)(const Operand&), float low = -2, float high = 2) {
  Add(cases, op, name, {{{2, 5}, low, high}}, [f](const Vars& v) { return f(v[0]); });
}

void AddActivations(std::vector<CheckCase>& cases) {
  AddUnary(cases, "erf", "plain", Erf);
  AddUnary(cases, "erf", "gelu", Gelu);
  AddUnary(cases, "sigmoid", "silu", Silu);
  AddUnary(cases, "sigmoid_cross_entropy", "softplus", Softplus);
  Add(cases, "maximum", "leaky_relu", {{{4}, 0, 0, {1, -1, 0.5f, -0.5f}}},
      [](const Vars& v) { return LeakyRelu(v[0], 0.2f); });
}

Sym Labels() { return ConstantTensor(Tensor::Of<int64_t>({2, 2}, {0, 3, 1, 1})); }

void AddSoftmaxes(std::vector<CheckCase>& cases) {
  AddUnary(cases, "softmax", "rows", Softmax);
  AddUnary(cases, "log_softmax", "rows", LogSoftmax);
  AddUnary(cases, "logsumexp", "rows", LogSumExp);
  Add(cases, "logsumexp", "vector", {{{9}}}, [](const Vars& v) { return LogSumExp(v[0]); });
  cases.push_back({"softmax", "batch", {{{13}}}, [](const Vars& v, const BatchRef& batch) {
                     return Softmax(batch["dense"] * v[0]);
                   }});
  Add(cases, "softmax_cross_entropy", "both", {{{3, 4}, -2, 2}, {{3, 4}, 0, 1}},
      [](const Vars& v) { return SoftmaxCrossEntropy(v[0], v[1]); });
  Add(cases, "sparse_softmax_cross_entropy", "labels", {{{2, 2, 4}, -2, 2}},
      [](const Vars& v) { return SparseSoftmaxCrossEntropy(v[0], Labels()); });
  cases.push_back({"sparse_softmax_cross_entropy",
                   "batch",
                   {{{13, 7}}},
                   [](const Vars& v, const BatchRef& batch) {
                     const Sym labels = Reshape(Slice(batch["ids"], {0, 2}, {-1, 1}), {-1});
                     return SparseSoftmaxCrossEntropy(MatMul(batch["dense"], v[0]), labels);
                   }});
}

void AddNorms(std::vector<CheckCase>& cases) {
  Add(cases, "layer_norm", "all", {{{2, 3, 9}}, {{9}}, {{9}}},
      [](const Vars& v) { return LayerNormalize(v[0], v[1], v[2]); });
  Add(cases, "rms_norm", "all", {{{4, 9}}, {{9}}},
      [](const Vars& v) { return RmsNormalize(v[0], v[1]); });
  cases.push_back(
      {"layer_norm", "batch", {{{13}}, {{13}}, {{13}}}, [](const Vars& v, const BatchRef& batch) {
         return LayerNormalize(batch["dense"] * v[0], v[1], v[2]);
       }});
  AddUnary(cases, "maximum", "l2_normalize", [](const Operand& x) { return L2Normalize(x); });
  Add(cases, "maximum", "cosine_similarity", {{{3, 5}}, {{3, 5}}},
      [](const Vars& v) { return CosineSimilarity(v[0], v[1]); });
}

void AddInteractions(std::vector<CheckCase>& cases) {
  Add(cases, "pairwise_interactions", "few", {{{2, 5, 3}}},
      [](const Vars& v) { return PairwiseInteractions(v[0]); });
  Add(cases, "pairwise_interactions", "two", {{{3, 2, 4}}},
      [](const Vars& v) { return PairwiseInteractions(v[0]); });
  Add(cases, "square", "factorization_machine", {{{2, 4, 3}}},
      [](const Vars& v) { return FactorizationMachine(v[0]); });
  Add(cases, "batch_matmul", "attention", {{{2, 2, 3, 4}}, {{2, 2, 5, 4}}, {{2, 2, 5, 3}}},
      [](const Vars& v) {
        const Sym mask = ConstantTensor(Tensor::Of<float>({2, 5}, {1, 1, 0, 1, 1, 1, 1, 1, 0, 0}));
        return ScaledDotProductAttention(v[0], v[1], v[2], KeyMaskBias(mask));
      });
  Add(cases, "batch_matmul", "causal_attention", {{{2, 4, 3}}, {{2, 4, 3}}, {{2, 4, 3}}},
      [](const Vars& v) { return ScaledDotProductAttention(v[0], v[1], v[2], CausalBias(4)); });
}

void AddImages(std::vector<CheckCase>& cases) {
  int number = 0;
  for (const Padding padding : {Padding::kValid, Padding::kSame}) {
    for (const int64_t stride : {1, 2}) {
      const WindowOptions options{stride, 1, padding};
      Add(cases, "conv2d", "window" + std::to_string(number), {{{2, 5, 4, 2}}, {{3, 2, 2, 3}}},
          [options](const Vars& v) { return Convolve2d(v[0], v[1], options); });
      const PoolOptions pool{2, 3, stride, 2, padding};
      std::vector<float> distinct;  // further apart than the step of the differences
      for (int i = 0; i < 2 * 5 * 5 * 2; ++i) {
        distinct.push_back(static_cast<float>(i * 37 % 100) * 0.04f - 2);
      }
      Add(cases, "max_pool2d", "window" + std::to_string(number), {{{2, 5, 5, 2}, 0, 0, distinct}},
          [pool](const Vars& v) { return MaxPool2d(v[0], pool); });
      Add(cases, "avg_pool2d", "window" + std::to_string(number), {{{2, 5, 5, 2}}},
          [pool](const Vars& v) { return AvgPool2d(v[0], pool); });
      ++number;
    }
  }
  Add(cases, "conv2d", "pixels", {{{2, 3, 3, 4}}, {{1, 1, 4, 3}}},
      [](const Vars& v) { return Convolve2d(v[0], v[1]); });
}

void AddRanks(std::vector<CheckCase>& cases) {
  const auto product = [](const Vars& v) { return BatchMatMul(v[0], v[1]); };
  Add(cases, "batch_matmul", "four_axes", {{{2, 3, 2, 4}}, {{2, 3, 4, 3}}}, product);
  Add(cases, "batch_matmul", "leading_broadcast", {{{2, 1, 2, 4}}, {{3, 4, 3}}}, product);
  Add(cases, "batch_matmul", "one_matrix", {{{2, 3, 2, 4}}, {{4, 3}}}, product);
  Add(cases, "batch_matmul", "one_first_matrix", {{{2, 4}}, {{3, 4, 3}}}, product);
  Add(cases, "batch_matmul", "one_transposed", {{{3, 2, 4}}, {{3, 4}}},
      [](const Vars& v) { return BatchMatMul(v[0], v[1], {.transpose_b = true}); });
  Add(cases, "batch_matmul", "both_transposed", {{{3, 4, 2}}, {{3, 4}}}, [](const Vars& v) {
    return BatchMatMul(v[0], v[1], {.transpose_a = true, .transpose_b = true});
  });
}

void AddLosses(std::vector<CheckCase>& cases) {
  const std::vector<float> far = {2, -2, 0.3f, -0.3f, 1.5f, 0.7f};
  const auto labels = [] { return ConstantTensor(Tensor::Of<float>({6}, {1, 0, 1, 0, 0, 1})); };
  Add(cases, "minimum", "huber", {{{6}, 0, 0, far}, {{6}, -0.1f, 0.1f}},
      [](const Vars& v) { return HuberLoss(v[0], v[1], 0.9f); });
  Add(cases, "abs", "mean_absolute_error", {{{6}, 0, 0, far}, {{6}, -0.1f, 0.1f}},
      [](const Vars& v) { return MeanAbsoluteError(v[0], v[1]); });
  Add(cases, "maximum", "quantile", {{{6}, 0, 0, far}, {{6}, -0.1f, 0.1f}},
      [](const Vars& v) { return QuantileLoss(v[0], v[1], 0.9f); });
  Add(cases, "relu", "hinge", {{{6}, 0, 0, far}},
      [=](const Vars& v) { return HingeLoss(v[0], labels()); });
  Add(cases, "exp", "focal", {{{6}, -2, 2}},
      [=](const Vars& v) { return FocalLoss(v[0], labels()); });
  Add(cases, "sigmoid_cross_entropy", "bpr", {{{3, 1}}, {{3, 2}}},
      [](const Vars& v) { return BprLoss(v[0], v[1]); });
  const auto ids = [](std::initializer_list<int64_t> ids) {
    return ConstantTensor(Tensor::Of<int64_t>({static_cast<int64_t>(ids.size())}, ids));
  };
  Add(cases, "logsumexp", "sampled_softmax", {{{3, 4}}, {{3, 4}}, {{2, 4}}}, [=](const Vars& v) {
    SampledSoftmaxOptions options;
    options.temperature = 0.5f;
    options.negative_log_q = ConstantTensor(Tensor::Of<float>({2}, {-1, -2}));
    options.positive_ids = ids({5, 6, 7});
    options.negative_ids = ids({6, 9});
    return SampledSoftmaxLoss(v[0], v[1], v[2], options);
  });
  Add(cases, "logsumexp", "sampled_softmax_own", {{{3, 4}}, {{3, 4}}, {{3, 2, 4}}},
      [](const Vars& v) { return SampledSoftmaxLoss(v[0], v[1], v[2]); });
  Add(cases, "logsumexp", "in_batch_softmax", {{{3, 4}}, {{3, 4}}},
      [](const Vars& v) { return InBatchSoftmaxLoss(v[0], v[1]); });
  Add(cases, "logsumexp", "in_batch_softmax_ids", {{{3, 4}}, {{3, 4}}}, [=](const Vars& v) {
    return InBatchSoftmaxLoss(v[0], v[1], {.temperature = 0.5f, .ids = ids({5, 6, 5})});
  });
}

}  // namespace

std::vector<CheckCase> NeuralCheckCases() {
  std::vector<CheckCase> cases;
  AddActivations(cases);
  AddSoftmaxes(cases);
  AddNorms(cases);
  AddInteractions(cases);
  AddImages(cases);
  AddRanks(cases);
  AddLosses(cases);
  return cases;
}

}  // namespace mu
