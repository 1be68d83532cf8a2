#include "coordinator/frontend/layer_docs.h"

namespace mu {

const std::vector<LayerDoc>& LayerDocs() {
  static const auto* const docs = new std::vector<LayerDoc>{
      {"Dense", "[..., inputs] -> [..., outputs]", "NAME/kernel, NAME/bias",
       "activation(x kernel + bias). Activations: none, relu, sigmoid, tanh, gelu, silu. With "
       "`product`, servers may compute x kernel (ShardedMatMul): the kernel is "
       "NAME/kernel_by_output [outputs, inputs]."},
      {"Mlp", "[batch, inputs] -> [batch, last width]",
       "those of the Dense layers NAME_0, NAME_1, "
       "...",
       "Dense layers, one after the other."},
      {"Embedding", "ids [...] -> [..., dim]", "table NAME", "A row for each id."},
      {"EmbeddingBagLayer", "values [n], splits [batch + 1], optional weights [n] -> [batch, dim]",
       "table NAME", "The rows of each bag as their sum, mean or sqrtn."},
      {"LayerNorm", "[..., width] -> the same", "NAME/gamma, NAME/beta",
       "Each row gets mean beta and deviation gamma."},
      {"RmsNorm", "[..., width] -> the same", "NAME/gamma",
       "Each row is divided by the root of the mean of its squares, times gamma."},
      {"GroupNorm", "[batch, ..., channels] -> the same", "NAME/gamma, NAME/beta",
       "Each group of channels of each record is normalised by itself; then each channel gets mean "
       "beta and deviation gamma."},
      {"BatchNorm", "[..., channels] -> the same",
       "NAME/gamma, NAME/beta; not trained: NAME/moving_mean, NAME/moving_variance",
       "Each channel gets mean beta and deviation gamma: by the batch's moments in a function that "
       "trains, which also moves the averages on the servers, by the averages in others."},
      {"DropoutLayer", "[...] -> the same", "",
       "In a function that trains 0 with a probability, else x scaled up; x in others."},
      {"Conv2d", "[batch, h, w, channels] -> [batch, oh, ow, filters]", "NAME/kernel, NAME/bias",
       "activation(convolution + bias) with strides and padding same or valid."},
      {"MultiHeadAttention", "query [batch, s, width], keys [batch, t, width] -> [batch, s, width]",
       "those of the Dense layers NAME/query, NAME/key, NAME/value, NAME/output",
       "Attention in heads, with a mask of keys, a causal mask and dropout of weights."},
      {"CrossNetwork", "[batch, width] -> the same",
       "those of the Dense layers NAME_0, NAME_1, ...", "Layers x0 * (x W + b) + x, as in DCN V2."},
      {"Fm", "vectors [batch, dim] each, numbers [batch, n] -> [batch]", "NAME/numbers",
       "The sum of the products of all pairs of features' vectors; a number scales a vector of its "
       "own."},
  };
  return *docs;
}

const std::vector<CallDoc>& LossDocs() {
  static const auto* const docs = new std::vector<CallDoc>{
      {"HuberLoss", "predictions, targets -> elementwise",
       "d * d / 2 up to delta, delta * (d - delta / 2) above, with d = |prediction - target|."},
      {"MeanAbsoluteError", "predictions, targets -> scalar", "The mean of |prediction - target|."},
      {"QuantileLoss", "predictions, targets -> elementwise",
       "quantile * d where d = target - prediction is above 0, (quantile - 1) * d below."},
      {"HingeLoss", "logits, labels -> elementwise",
       "max(0, 1 - logit) of a label 1, max(0, 1 + logit) of a 0."},
      {"FocalLoss", "logits, labels -> elementwise",
       "-(1 - p)^gamma * log(p), p being the probability of the right label, weighted by alpha."},
      {"BprLoss", "positive, negative -> broadcast", "-log(sigmoid(positive - negative))."},
      {"SampledSoftmaxLoss",
       "queries, positives [batch, d], negatives [n, d] or [batch, n, d] -> [batch]",
       "Cross entropy of the positive among sampled negatives; logits are corrected by log q, and "
       "a "
       "negative that is the positive is left out."},
      {"InBatchSoftmaxLoss", "queries, items [batch, d] -> [batch]",
       "The same with the batch's other items as negatives."},
  };
  return *docs;
}

const std::vector<CallDoc>& NeuralCallDocs() {
  static const auto* const docs = new std::vector<CallDoc>{
      {"Gelu", "elementwise", "x * Phi(x), with erf."},
      {"Silu", "elementwise", "x * sigmoid(x)."},
      {"Softplus", "elementwise", "log(1 + exp(x)), without overflow."},
      {"LeakyRelu", "elementwise", "x above 0, slope * x below."},
      {"L2Normalize", "[..., n] -> the same", "x divided by its length."},
      {"CosineSimilarity", "[..., n] twice -> [...]", "The product of both, L2-normalised."},
      {"FactorizationMachine", "[batch, n, d] -> [batch]",
       "The sum of the products of all pairs of a record's vectors."},
      {"ScaledDotProductAttention",
       "query [..., s, d], key [..., t, d], value [..., t, e] -> [..., s, e]",
       "softmax(query key^T / sqrt(d) + bias) value."},
      {"KeyMaskBias", "[batch, t] -> [batch, 1, 1, t]", "A bias that hides keys whose mask is 0."},
      {"CausalBias", "-> [size, size]", "A bias that hides later keys from each query."},
  };
  return *docs;
}

}  // namespace mu
