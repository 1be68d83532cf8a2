// The models of binary labels that read any features (features.h): each adds up some of four parts.
//
//   part   what it adds to the logit
//   wide   a weight for each row and number, and a bias: logistic regression
//   pairs  products of the vectors of all pairs of features (Rendle, "Factorization Machines",
//   2010) deep   an MLP over the features' vectors cross  layers x' = x0 * (W x + b) + x over these
//   vectors, before the MLP (Wang et al., "DCN V2",
//          2021, stacked)
//
// wide_deep is of Cheng et al., "Wide & Deep Learning for Recommender Systems" (2016), deepfm of
// Guo et al., "DeepFM" (2017).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "coordinator/frontend/features.h"
#include "coordinator/frontend/layers_interaction.h"

namespace mu {

struct FeatureModelKind {
  const char* name;  // below `model` in a job file
  pb::ModelProto::KindCase kind;
  const pb::FeatureModelProto& (pb::ModelProto::*config)() const;
  bool wide;
  bool pairs;
  bool deep;
  bool cross;

  bool embeds() const { return pairs || deep; }
};

absl::Span<const FeatureModelKind> FeatureModelKinds();
// Null if the model is another one.
const FeatureModelKind* FeatureModelOf(const pb::ModelProto& model);

class FeatureModel final : public Model {
 public:
  // All that is wrong with the configuration.
  static std::vector<ModelProblem> Problems(const FeatureModelKind& kind,
                                            const pb::FeatureModelProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const FeatureModelKind& kind,
                                                           const pb::FeatureModelProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override { return features_.IdBounds(); }

  Sym Logits(const BatchRef& batch) const;  // [batch]

 private:
  FeatureModel(const FeatureModelKind& kind, const pb::FeatureModelProto& config);

  absl::Status CreateWide(VariableFactory& factory);
  absl::Status CreateDeep(VariableFactory& factory);
  Sym Wide(const BatchRef& batch) const;
  Sym Deep(const BatchRef& batch, std::vector<Sym> vectors) const;

  const FeatureModelKind kind_;
  const std::string label_;
  const int64_t dim_;
  const std::vector<int64_t> hidden_;
  const int64_t cross_layers_;
  const FeatureSet features_;

  std::vector<EmbeddingTable> weights_;  // wide/...: rows of one number
  Variable number_weights_;              // wide/numbers [numbers, 1]
  Variable bias_;                        // [1]
  std::vector<EmbeddingTable> tables_;   // embedding/...: rows of dim_ numbers
  Fm pairs_;                             // pairs/numbers [numbers, dim_]
  CrossNetwork cross_;                   // cross_0, cross_1, ...
  Mlp deep_;
};

}  // namespace mu
