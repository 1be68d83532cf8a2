// Several labels of one record: Ma et al., "Modeling Task Relationships in Multi-task Learning with
// Multi-gate Mixture-of-Experts" (2018).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"

namespace mu {

// All tasks share the features' vectors and some mlps, the experts. Each task has a gate, which
// mixes the experts by weights that add up to 1, and an mlp from the mixture to its logit. The loss
// is the weighted sum of the tasks'. Tables embedding/COLUMN, layers expert_0_0/...,
// gate_TASK/..., TASK_0/..., ...
class Mmoe final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::MmoeProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::MmoeProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::vector<pb::ColumnSchema> ColumnsFor(DataPurpose purpose) const override;
  std::map<std::string, int64_t> IdBounds() const override { return features_.IdBounds(); }

 private:
  explicit Mmoe(const pb::MmoeProto& config);
  Sym Inputs(const BatchRef& batch) const;

  const pb::MmoeProto config_;
  const int64_t dim_;
  const FeatureSet features_;
  std::vector<EmbeddingTable> tables_;
  std::vector<Mlp> experts_;
  std::vector<Dense> gates_;  // of each task
  std::vector<Mlp> towers_;
};

}  // namespace mu
