// Retrieval with two towers: Yi et al., "Sampling-Bias-Corrected Neural Modeling for Large Corpus
// Item Recommendations" (2019).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"

namespace mu {

// An mlp over a user's features and one over an item's, each ending in a vector of length 1. The
// score is their product, divided by a temperature. Each record of the training data is a choice:
// the loss is the cross entropy of softmax over the record's item and others, either those of the
// batch's other records or some that are drawn uniformly. Tables user/COLUMN and item/COLUMN,
// layers user_tower_0/..., item_tower_0/..., ...
class TwoTower final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::TwoTowerProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::TwoTowerProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kRanking; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::vector<pb::ColumnSchema> ColumnsFor(DataPurpose purpose) const override;
  std::map<std::string, int64_t> IdBounds() const override;

 private:
  struct Tower {
    FeatureSet features;
    std::vector<EmbeddingTable> tables;
    Mlp layers;

    absl::Status Create(VariableFactory& factory, const std::string& name, int64_t dim,
                        const std::vector<int64_t>& widths);
    // [batch, d], each of length 1.
    Sym operator()(const BatchRef& batch) const;
    // The same of ids [n] of the tower's only feature.
    Sym OfIds(const Sym& ids) const;
  };

  explicit TwoTower(const pb::TwoTowerProto& config);
  Sym Loss(const Sym& users, const Sym& items, const BatchRef& batch) const;

  const pb::TwoTowerProto config_;
  const float temperature_;
  Tower user_;
  Tower item_;
};

}  // namespace mu
