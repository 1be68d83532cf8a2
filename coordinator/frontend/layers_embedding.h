// Layers of embedding tables.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/frontend/ops.h"
#include "coordinator/frontend/variable_factory.h"

namespace mu {

struct EmbeddingOptions {
  Initializer initializer = Uniform{-0.05f, 0.05f};
  std::optional<Optimizer> optimizer = std::nullopt;
};

// ids [...], from 0 to rows - 1 -> [..., dim]. Table NAME.
class Embedding {
 public:
  static absl::StatusOr<Embedding> Create(VariableFactory& factory, const std::string& name,
                                          int64_t rows, int64_t dim,
                                          const EmbeddingOptions& options = {});
  Sym operator()(const Operand& ids) const { return EmbeddingLookup(table_, ids); }

  const EmbeddingTable& table() const { return table_; }

 private:
  EmbeddingTable table_;
};

// The rows of each bag values[splits[b] : splits[b + 1]] as one: [batch, dim]. Table NAME.
class EmbeddingBagLayer {
 public:
  static absl::StatusOr<EmbeddingBagLayer> Create(VariableFactory& factory, const std::string& name,
                                                  int64_t rows, int64_t dim,
                                                  Combiner combiner = Combiner::kSum,
                                                  const EmbeddingOptions& options = {});
  Sym operator()(const Operand& values, const Operand& splits) const {
    return EmbeddingBag(table_, values, splits, combiner_);
  }
  // weights float32, one for each value.
  Sym operator()(const Operand& values, const Operand& splits, const Operand& weights) const {
    return EmbeddingBag(table_, values, splits, weights, combiner_);
  }

  const EmbeddingTable& table() const { return table_; }

 private:
  EmbeddingTable table_;
  Combiner combiner_ = Combiner::kSum;
};

}  // namespace mu
