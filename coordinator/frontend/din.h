// Attention over what a user chose before: Zhou et al., "Deep Interest Network for Click-Through
// Rate Prediction" (2018).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers.h"

namespace mu {

// An mlp gives each item of the history a weight, from its vector h and the candidate's vector c:
// of [h, c, h - c, h * c]. The weighted sum of the history, the candidate and the other features
// lead through a second mlp to the logit of the label. The weights are not normalised, as in the
// paper. Table items, tables feature/COLUMN, layers attention_0/..., deep_0/..., ...
class Din final : public Model {
 public:
  static std::vector<ModelProblem> Problems(const pb::DinProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const pb::DinProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override;

 private:
  explicit Din(const pb::DinProto& config);
  // history [batch, length, dim], candidate [batch, dim] -> [batch, dim].
  Sym Interest(const Sym& history, const Sym& candidate, const Sym& lengths) const;

  const pb::DinProto config_;
  const int64_t dim_;
  const FeatureSet features_;
  EmbeddingTable items_;
  std::vector<EmbeddingTable> tables_;
  Mlp attention_;
  Mlp deep_;
};

}  // namespace mu
