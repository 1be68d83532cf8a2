// A transformer over the items that a user chose, one after the other: Kang and McAuley,
// "Self-Attentive Sequential Recommendation" (2018).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/layers_attention.h"
#include "coordinator/frontend/layers_norm.h"

namespace mu {

// In training each position of a sequence predicts the next item, against one that is drawn
// uniformly. In evaluation and prediction the last position scores a candidate, from the newest
// length - 1 items at most: no step trains the position behind them. Item 0 is padding, at the end
// of a sequence, where causal attention does not see it. Table items, variables positions,
// block_0/..., norm/...
class SasRec final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::SasRecProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::SasRecProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kRanking; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::vector<pb::ColumnSchema> ColumnsFor(DataPurpose purpose) const override;
  std::map<std::string, int64_t> IdBounds() const override;

 private:
  struct Block {
    LayerNorm attention_norm;
    MultiHeadAttention attention;
    LayerNorm dense_norm;
    Dense first;
    Dense second;
  };

  explicit SasRec(const pb::SasRecProto& config);
  Sym Drop(const Sym& x) const;
  // ids [batch, n], n below length -> [batch, n, dim].
  Sym States(const Sym& ids, int64_t n) const;
  Sym NextItemLoss(const Sym& sequence) const;
  // [batch]: how well the candidate follows the sequence.
  Sym Score(const Sym& sequence, const Sym& lengths, const Sym& candidates) const;

  const pb::SasRecProto config_;
  const int64_t length_;
  const int64_t dim_;
  const float dropout_;
  EmbeddingTable items_;
  Variable positions_;  // [length, dim]; the last row is not used
  std::vector<Block> blocks_;
  LayerNorm norm_;
};

}  // namespace mu
