#include "coordinator/frontend/layers_embedding.h"

namespace mu {
namespace {

absl::StatusOr<EmbeddingTable> CreateTable(VariableFactory& factory, const std::string& name,
                                           int64_t rows, int64_t dim,
                                           const EmbeddingOptions& options) {
  return factory.CreateEmbeddingTable({.name = name,
                                       .rows = rows,
                                       .dim = dim,
                                       .initializer = options.initializer,
                                       .optimizer = options.optimizer});
}

}  // namespace

absl::StatusOr<Embedding> Embedding::Create(VariableFactory& factory, const std::string& name,
                                            int64_t rows, int64_t dim,
                                            const EmbeddingOptions& options) {
  Embedding layer;
  MU_ASSIGN_OR_RETURN(layer.table_, CreateTable(factory, name, rows, dim, options));
  return layer;
}

absl::StatusOr<EmbeddingBagLayer> EmbeddingBagLayer::Create(VariableFactory& factory,
                                                            const std::string& name, int64_t rows,
                                                            int64_t dim, Combiner combiner,
                                                            const EmbeddingOptions& options) {
  EmbeddingBagLayer layer;
  layer.combiner_ = combiner;
  MU_ASSIGN_OR_RETURN(layer.table_, CreateTable(factory, name, rows, dim, options));
  return layer;
}

}  // namespace mu
