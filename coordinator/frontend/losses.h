// Losses beside SigmoidCrossEntropy and MeanSquaredError (ops.h) and the cross entropies of softmax
// (neural_ops.h). Each gives a loss per element or record, unless its name says "Mean": take
// ReduceMean before Minimize.
#pragma once

#include "coordinator/frontend/neural_ops.h"

namespace mu {

// d = |prediction - target|: d * d / 2 up to delta, delta * (d - delta / 2) above (Huber, 1964).
Sym HuberLoss(const Operand& predictions, const Operand& targets, float delta = 1.0f);
Sym MeanAbsoluteError(const Operand& predictions, const Operand& targets);  // scalar

// d = target - prediction: quantile * d where the prediction is too small, (quantile - 1) * d where
// it is too large. What is learnt is that quantile (Koenker and Bassett, "Regression Quantiles",
// 1978).
Sym QuantileLoss(const Operand& predictions, const Operand& targets, float quantile);

// labels are 0 or 1: max(0, 1 - logit) of a 1, max(0, 1 + logit) of a 0.
Sym HingeLoss(const Operand& logits, const Operand& labels);

// Lin et al., "Focal Loss for Dense Object Detection", 2017: with p the probability of the right
// label, -(1 - p)^gamma * log(p), times alpha where the label is 1 and 1 - alpha where it is 0.
struct FocalOptions {
  float gamma = 2.0f;
  float alpha = 0.25f;  // below 0: no such factor
};
Sym FocalLoss(const Operand& logits, const Operand& labels, const FocalOptions& options = {});

// Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", 2009:
// -log(sigmoid(positive - negative)). The shapes broadcast: [batch, 1] against [batch, n].
Sym BprLoss(const Operand& positive, const Operand& negative);

// The cross entropy of softmax over one item that was chosen and some that were sampled, instead of
// over all items. A logit is query * item / temperature - log(q), where q is the probability that
// the item is among the samples: so the loss estimates the one over all items (Bengio, Senécal,
// "Adaptive Importance Sampling to Accelerate Training of a Neural Probabilistic Language Model",
// 2008).
struct SampledSoftmaxOptions {
  float temperature = 1.0f;
  // log(q); an empty Sym: no correction. [batch] and [negatives] or [batch, negatives].
  Sym positive_log_q = {};
  Sym negative_log_q = {};
  // Ids: a negative that is the record's positive is left out. Empty: none is. Shapes as log q.
  Sym positive_ids = {};
  Sym negative_ids = {};
};
// queries, positives [batch, d]; negatives [n, d], shared by all records, or [batch, n, d] ->
// [batch].
Sym SampledSoftmaxLoss(const Operand& queries, const Operand& positives, const Operand& negatives,
                       const SampledSoftmaxOptions& options = {});

// The items of the batch's other records are the negatives (Yi et al., "Sampling-Bias-Corrected
// Neural Modeling for Large Corpus Item Recommendations", 2019).
struct InBatchSoftmaxOptions {
  float temperature = 1.0f;
  Sym log_q = {};  // [batch]: how probable each record's item is in a batch; empty: no correction
  // [batch]: ids of the items; an item that comes several times in the batch is no negative of
  // itself. Empty: every record's item counts as another one.
  Sym ids = {};
};
// queries, items [batch, d] -> [batch].
Sym InBatchSoftmaxLoss(const Operand& queries, const Operand& items,
                       const InBatchSoftmaxOptions& options = {});

}  // namespace mu
