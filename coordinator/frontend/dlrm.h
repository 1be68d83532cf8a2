// DLRM: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems" (2019), with the reference implementation's initial values. Reads criteo_tsv.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/model.h"
#include "proto/job.pb.h"

namespace mu {

// dense [batch, 13] -> bottom MLP -> [batch, dim]; 26 tables embedding_0 .. embedding_25 of
// hash_buckets rows; products of all pairs of these 27 vectors beside the bottom MLP's output ->
// top MLP -> logit.
class Dlrm : public Model {
 public:
  // INVALID_ARGUMENT naming the key.
  static absl::StatusOr<std::unique_ptr<Dlrm>> FromConfig(const pb::DlrmProto& config);

  absl::Status Create(VariableFactory& factory) override;
  ModelOutput Build(FunctionBuilder& builder, const BatchRef& batch) override;
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override;

  // [batch, 13], [batch, 26] -> [batch]
  Sym Logits(const Sym& dense, const Sym& ids) const;

 private:
  explicit Dlrm(const pb::DlrmProto& config) : config_(config) {}

  const pb::DlrmProto config_;
  Mlp bottom_;
  Mlp top_;
  std::vector<EmbeddingTable> tables_;
};

}  // namespace mu
