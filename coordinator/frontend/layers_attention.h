// Attention (Vaswani et al., "Attention Is All You Need", 2017).
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {

struct AttentionOptions {
  int64_t heads = 1;     // divides the width
  float dropout = 0.0f;  // of the weights, in functions that train
  std::optional<Optimizer> optimizer = std::nullopt;
};

// Which keys a query may see.
struct AttentionMask {
  Sym keys = {};  // [batch, t], of any type: 0 hides a key, such as padding. Empty: all are there
  bool causal = false;  // a query sees the keys up to its own place; s = t
};

// query [batch, s, width], key and value [batch, t, width] -> [batch, s, width]; s and t are known
// sizes. Each head attends with width / heads of the numbers. A query that may see no key gets the
// mean of all of them. Layers (Dense) NAME/query, NAME/key, NAME/value and NAME/output.
class MultiHeadAttention {
 public:
  static absl::StatusOr<MultiHeadAttention> Create(VariableFactory& factory,
                                                   const std::string& name, int64_t width,
                                                   const AttentionOptions& options = {});
  // Self-attention.
  Sym operator()(const Operand& x, const AttentionMask& mask = {}) const;
  Sym operator()(const Operand& query, const Operand& keys, const AttentionMask& mask) const;

 private:
  Sym Heads(const Sym& x) const;

  Dense query_, key_, value_, output_;
  int64_t width_ = 0;
  int64_t heads_ = 1;
  float dropout_ = 0.0f;
};

}  // namespace mu
