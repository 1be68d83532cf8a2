#include "coordinator/frontend/neural_ops.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/op_support.h"

namespace mu {
namespace {

// Far below any logit, and yet finite: a query that may see no key at all gets the mean of the
// values, not NaN.
constexpr float kHidden = -1e9f;

}  // namespace

Sym Erf(const Operand& x) { return Unary("erf", x); }
Sym Softmax(const Operand& x) { return Unary("softmax", x); }
Sym LogSoftmax(const Operand& x) { return Unary("log_softmax", x); }
Sym LogSumExp(const Operand& x) { return Unary("logsumexp", x); }
Sym PairwiseInteractions(const Operand& x) { return Unary("pairwise_interactions", x); }

Sym Gelu(const Operand& x) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  return value * 0.5f * (Erf(value * std::sqrt(0.5f)) + 1.0f);
}

Sym Silu(const Operand& x) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  return value * Sigmoid(value);
}

Sym Softplus(const Operand& x) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  return SigmoidCrossEntropy(value, ZerosLike(value));
}

Sym LeakyRelu(const Operand& x, float slope) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  return Maximum(value, value * slope);
}

Sym SoftmaxCrossEntropy(const Operand& logits, const Operand& labels) {
  return AddOp("softmax_cross_entropy", {logits.Bind(), labels.Bind()}, {}, logits.place());
}

Sym SparseSoftmaxCrossEntropy(const Operand& logits, const Operand& labels) {
  return AddOp("sparse_softmax_cross_entropy", {logits.Bind(), labels.Bind(kInt64)}, {},
               logits.place());
}

Sym SparseSoftmaxCrossEntropyGrad(const Operand& dy, const Operand& logits, const Operand& labels) {
  return AddOp("sparse_softmax_cross_entropy_grad", {dy.Bind(), logits.Bind(), labels.Bind(kInt64)},
               {}, dy.place());
}

Sym LayerNormalize(const Operand& x, const Operand& gamma, const Operand& beta, float epsilon) {
  return AddOp("layer_norm", {x.Bind(), gamma.Bind(), beta.Bind()},
               Attrs().Float("epsilon", epsilon), x.place());
}

Sym RmsNormalize(const Operand& x, const Operand& gamma, float epsilon) {
  return AddOp("rms_norm", {x.Bind(), gamma.Bind()}, Attrs().Float("epsilon", epsilon), x.place());
}

NormGradients LayerNormGrad(const Operand& dy, const Operand& x, const Operand& gamma,
                            float epsilon) {
  const Sym dx = AddOp("layer_norm_grad", {dy.Bind(), x.Bind(), gamma.Bind()},
                       Attrs().Float("epsilon", epsilon), dy.place());
  return {dx, OtherOutput(dx, 1), OtherOutput(dx, 2)};
}

NormGradients RmsNormGrad(const Operand& dy, const Operand& x, const Operand& gamma,
                          float epsilon) {
  const Sym dx = AddOp("rms_norm_grad", {dy.Bind(), x.Bind(), gamma.Bind()},
                       Attrs().Float("epsilon", epsilon), dy.place());
  return {dx, OtherOutput(dx, 1), Sym()};
}

Sym L2Normalize(const Operand& x, float epsilon) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  return value / Sqrt(Maximum(ReduceSum(Square(value), {-1}, true), epsilon));
}

Sym CosineSimilarity(const Operand& a, const Operand& b) {
  const CallScope scope(a.place());
  return ReduceSum(L2Normalize(a) * L2Normalize(b), {-1});
}

Sym PairwiseInteractionsGrad(const Operand& dy, const Operand& x) {
  return AddOp("pairwise_interactions_grad", {dy.Bind(), x.Bind()}, {}, dy.place());
}

// The sum over all pairs is half of (square of the sum - sum of the squares).
Sym FactorizationMachine(const Operand& x) {
  const CallScope scope(x.place());
  const Sym value = x.Bind();
  const Sym pairs = Square(ReduceSum(value, {1})) - ReduceSum(Square(value), {1});
  return ReduceSum(pairs, {1}) * 0.5f;
}

Sym ScaledDotProductAttention(const Operand& query, const Operand& key, const Operand& value,
                              const Sym& bias, float dropout) {
  const CallScope scope(query.place());
  const Sym q = query.Bind();
  const int64_t width = q.shape().rank() > 0 ? q.shape()[q.shape().rank() - 1] : kUnknownDim;
  if (q.valid() && width <= 0) {
    return q.graph()->Fail(
        "attention",
        absl::InvalidArgumentError(
            absl::StrCat("the size of a query's vectors must be known, got ", q.spec().ToString())),
        query.place());
  }
  const Sym scaled = q * (1.0f / std::sqrt(static_cast<float>(width)));
  Sym logits = BatchMatMul(scaled, key, {.transpose_b = true});
  if (bias.graph() != nullptr) logits = logits + bias;
  Sym weights = Softmax(logits);
  if (dropout > 0) weights = Dropout(weights, dropout);
  return BatchMatMul(weights, value);
}

Sym KeyMaskBias(const Operand& mask) {
  const CallScope scope(mask.place());
  const Sym given = mask.Bind();
  // Whatever is not 0 shows its key: only a bool is 0 or 1 for sure.
  const Sym shown = Cast(given.dtype() == kBool ? given : Cast(given, kBool), kFloat32);
  const int64_t keys = shown.shape().rank() == 2 ? shown.shape()[1] : kUnknownDim;
  return Reshape((1.0f - shown) * kHidden, {-1, 1, 1, keys});
}

Sym CausalBias(int64_t size, const char* file, int line) {
  Tensor bias(kFloat32, {size, size});
  for (int64_t query = 0; query < size; ++query) {
    for (int64_t key = 0; key < size; ++key) {
      bias.data<float>()[query * size + key] = key > query ? kHidden : 0.0f;
    }
  }
  return ConstantTensor(bias, file, line);
}

}  // namespace mu
