// Ops of neural networks beyond ops.h: activations, softmax, normalisation, attention. What takes
// rows works on the last axis.
#pragma once

#include "coordinator/frontend/ops.h"

namespace mu {

// Activations, elementwise.
Sym Erf(const Operand& x);
// x * Phi(x), with the normal distribution's Phi (Hendrycks, Gimpel, 2016; not the approximation by
// tanh).
Sym Gelu(const Operand& x);
Sym Silu(const Operand& x);                            // x * sigmoid(x)
Sym Softplus(const Operand& x);                        // log(1 + exp(x)), without overflow
Sym LeakyRelu(const Operand& x, float slope = 0.01f);  // x above 0, slope * x below; slope < 1

Sym Softmax(const Operand& x);
Sym LogSoftmax(const Operand& x);
Sym LogSumExp(const Operand& x);  // [..., n] -> [...]
// logits and labels [..., classes] -> [...]; labels are probabilities.
Sym SoftmaxCrossEntropy(const Operand& logits, const Operand& labels);
// logits [..., classes], labels [...] int32 or int64 -> [...]. OUT_OF_RANGE at run time for a label
// that is no class.
Sym SparseSoftmaxCrossEntropy(const Operand& logits, const Operand& labels);

// gamma and beta [n] for x [..., n].
Sym LayerNormalize(const Operand& x, const Operand& gamma, const Operand& beta,
                   float epsilon = 1e-5f);
Sym RmsNormalize(const Operand& x, const Operand& gamma, float epsilon = 1e-6f);
// x divided by its length; vectors shorter than sqrt(epsilon) are divided by that.
Sym L2Normalize(const Operand& x, float epsilon = 1e-12f);
Sym CosineSimilarity(const Operand& a, const Operand& b);  // [..., n] twice -> [...]

// Products of all pairs of a record's vectors: [batch, n, d] -> [batch, n (n - 1) / 2], in the
// order (1, 0), (2, 0), (2, 1), (3, 0), ...
Sym PairwiseInteractions(const Operand& x);
// The sum of the same products over d and all pairs, without making them: [batch, n, d] -> [batch]
// (Rendle, "Factorization Machines", 2010).
Sym FactorizationMachine(const Operand& x);

// softmax(query key^T / sqrt(d) + bias) value (Vaswani et al., 2017): query [..., s, d], key
// [..., t, d], value [..., t, e] -> [..., s, e]. `bias` broadcasts to [..., s, t]; an empty Sym:
// none. `dropout` is the rate at which weights are dropped in functions that train.
Sym ScaledDotProductAttention(const Operand& query, const Operand& key, const Operand& value,
                              const Sym& bias = {}, float dropout = 0.0f);
// A bias that hides the keys whose mask is 0: mask [batch, t], of any type, -> [batch, 1, 1, t].
Sym KeyMaskBias(const Operand& mask);
// A bias that hides later keys from each query: [size, size].
Sym CausalBias(int64_t size, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// What gradients are made of.
Sym SparseSoftmaxCrossEntropyGrad(const Operand& dy, const Operand& logits, const Operand& labels);
struct NormGradients {
  Sym x, gamma, beta;  // no beta of RMS
};
NormGradients LayerNormGrad(const Operand& dy, const Operand& x, const Operand& gamma,
                            float epsilon);
NormGradients RmsNormGrad(const Operand& dy, const Operand& x, const Operand& gamma, float epsilon);
Sym PairwiseInteractionsGrad(const Operand& dy, const Operand& x);

}  // namespace mu
