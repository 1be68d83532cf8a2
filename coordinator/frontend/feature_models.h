// The models of a label that read any features (features.h). The label is 0 or 1, or one of several
// classes (but for those with pairs or pooled vectors). Each model adds up some of three parts of
// the logits, whose mlp may come behind something else:
//
// - wide: a weight for each row and number, and a bias: logistic regression;
// - pairs: products of the vectors of all pairs of features (Rendle, "Factorization Machines",
// 2010);
// - deep: an mlp over the features' vectors;
// - cross: layers x' = x0 * (W x + b) + x over these vectors, before the mlp (Wang et al., "DCN
// V2",
//   2021, stacked);
// - pooled: the products of the vectors of all pairs, added up to one vector, which the mlp gets
//   instead (He, Chua, "Neural Factorization Machines", 2017).
//
// wide_deep is of Cheng et al., "Wide & Deep Learning for Recommender Systems" (2016), deepfm of
// Guo et al., "DeepFM" (2017).
#pragma once

#include <memory>
#include <optional>
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
  bool pooled;

  bool embeds() const { return pairs || deep; }
  bool multiplies() const { return pairs || pooled; }  // so that numbers have vectors, too
};

absl::Span<const FeatureModelKind> FeatureModelKinds();
// Null if the model is another one.
const FeatureModelKind* FeatureModelOf(const pb::ModelProto& model);

class FeatureModel final : public Model {
 public:
  // Whether a model of this kind takes the key of FeatureModelProto; it refuses the others.
  static bool HasKey(const FeatureModelKind& kind, absl::string_view key);
  // All that is wrong with the configuration.
  static std::vector<ModelProblem> Problems(const FeatureModelKind& kind,
                                            const pb::FeatureModelProto& config);
  // INVALID_ARGUMENT naming the key of the first problem.
  static absl::StatusOr<std::unique_ptr<Model>> FromConfig(const FeatureModelKind& kind,
                                                           const pb::FeatureModelProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override {
    return classes_ > 0 ? Task::kMultiClass : Task::kBinaryClassification;
  }
  std::vector<pb::ColumnSchema> Columns() const override;
  std::map<std::string, int64_t> IdBounds() const override;

  Sym Logits(const BatchRef& batch) const;  // [batch], of several classes [batch, classes]

 private:
  FeatureModel(const FeatureModelKind& kind, const pb::FeatureModelProto& config);

  int64_t outputs() const { return classes_ > 0 ? classes_ : 1; }
  absl::Status CreateWide(VariableFactory& factory);
  absl::Status CreateDeep(VariableFactory& factory);
  Sym Wide(const BatchRef& batch) const;
  Sym Deep(const Sym& first) const;  // the logits of the mlp over this

  const FeatureModelKind kind_;
  const std::string label_;
  const int64_t classes_;  // 0: the label is 0 or 1
  const std::optional<ProductPlace> product_;
  const int64_t dim_;
  const std::vector<int64_t> hidden_;
  const int64_t cross_layers_;
  const FeatureSet features_;

  std::vector<EmbeddingTable> weights_;  // wide/...: rows of outputs() numbers
  // wide/numbers [numbers, outputs()]; of a product_ wide/numbers_by_class, transposed.
  Variable number_weights_;
  Variable bias_;                       // [outputs()]
  std::vector<EmbeddingTable> tables_;  // embedding/...: rows of dim_ numbers
  Fm pairs_;                            // pairs/numbers [numbers, dim_]; also of pooled ones
  CrossNetwork cross_;                  // cross_0, cross_1, ...
  Mlp deep_;
};

}  // namespace mu
