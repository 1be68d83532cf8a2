#include "coordinator/frontend/losses.h"

#include "coordinator/frontend/op_support.h"

namespace mu {
namespace {

constexpr float kLeftOut = -1e9f;

bool IsGiven(const Sym& sym) { return sym.graph() != nullptr || !sym.status().ok(); }

// 1 for a label of 1, -1 for one of 0.
Sym Signs(const Sym& labels) { return labels * 2.0f - 1.0f; }

Sym Column(const Sym& x) { return Reshape(x, {-1, 1}); }

// positive [batch], negatives [batch, n].
Sym ChosenAgainst(const Sym& positive, const Sym& negatives) {
  return LogSumExp(Concat({Column(positive), negatives}, 1)) - positive;
}

}  // namespace

Sym HuberLoss(const Operand& predictions, const Operand& targets, float delta) {
  const CallScope scope(predictions.place());
  const Sym distance = Abs(predictions - targets);
  const Sym near = Minimum(distance, delta);
  return Square(near) * 0.5f + (distance - near) * delta;
}

Sym MeanAbsoluteError(const Operand& predictions, const Operand& targets) {
  const CallScope scope(predictions.place());
  return ReduceMean(Abs(predictions - targets));
}

Sym QuantileLoss(const Operand& predictions, const Operand& targets, float quantile) {
  const CallScope scope(predictions.place());
  const Sym distance = targets - predictions;
  return Maximum(distance * quantile, distance * (quantile - 1));
}

Sym HingeLoss(const Operand& logits, const Operand& labels) {
  const CallScope scope(logits.place());
  return Relu(1.0f - logits.Bind() * Signs(labels.Bind()));
}

// With s = 1 or -1: -log(p) = softplus(-s * x), and (1 - p)^gamma = exp(-gamma * softplus(s * x)).
Sym FocalLoss(const Operand& logits, const Operand& labels, const FocalOptions& options) {
  const CallScope scope(logits.place());
  const Sym x = logits.Bind();
  const Sym one = labels.Bind();
  const Sym right = x * Signs(one);
  const Sym loss = Exp(Softplus(right) * -options.gamma) * Softplus(-right);
  if (options.alpha < 0) return loss;
  return loss * (one * (2 * options.alpha - 1) + (1 - options.alpha));
}

Sym BprLoss(const Operand& positive, const Operand& negative) {
  const CallScope scope(positive.place());
  return Softplus(negative - positive);
}

Sym SampledSoftmaxLoss(const Operand& queries, const Operand& positives, const Operand& negatives,
                       const SampledSoftmaxOptions& options) {
  const CallScope scope(queries.place());
  const Sym query = queries.Bind() * (1.0f / options.temperature);
  const Sym sampled = negatives.Bind();
  Sym positive = ReduceSum(query * positives, {1});
  Sym negative;
  if (sampled.shape().rank() == 3) {
    const int64_t n = sampled.shape()[1];
    const Sym rows = Reshape(query, {-1, query.shape()[1], 1});
    negative = Reshape(BatchMatMul(sampled, rows), {-1, n});
  } else {
    negative = MatMul(query, sampled, {.transpose_b = true});
  }
  if (IsGiven(options.positive_log_q)) positive = positive - options.positive_log_q;
  if (IsGiven(options.negative_log_q)) negative = negative - options.negative_log_q;
  if (IsGiven(options.positive_ids) && IsGiven(options.negative_ids)) {
    const Sym same = Equal(Column(options.positive_ids), options.negative_ids);
    negative = negative + Cast(same, kFloat32) * kLeftOut;
  }
  return ChosenAgainst(positive, negative);
}

Sym InBatchSoftmaxLoss(const Operand& queries, const Operand& items,
                       const InBatchSoftmaxOptions& options) {
  const CallScope scope(queries.place());
  const Sym item = items.Bind();
  if (IsGiven(options.ids)) {
    return SampledSoftmaxLoss(queries, item, item,
                              {.temperature = options.temperature,
                               .positive_log_q = options.log_q,
                               .negative_log_q = options.log_q,
                               .positive_ids = options.ids,
                               .negative_ids = options.ids});
  }
  const Sym query = queries.Bind() * (1.0f / options.temperature);
  Sym positive = ReduceSum(query * item, {1});
  Sym all = MatMul(query, item, {.transpose_b = true});  // the positives on the diagonal
  if (IsGiven(options.log_q)) {
    positive = positive - options.log_q;
    all = all - options.log_q;
  }
  return LogSumExp(all) - positive;
}

}  // namespace mu
