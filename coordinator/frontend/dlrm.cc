#include "coordinator/frontend/dlrm.h"

#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"
#include "coordinator/frontend/neural_ops.h"

namespace mu {
namespace {

constexpr int64_t kVectors = kCriteoCategorical + 1;
constexpr int64_t kPairs = kVectors * (kVectors - 1) / 2;

// Smaller ones make the products of two fields, all that the top layers see of them, vanish at
// first, and what is learnt generalises worse: AUC on the synthetic log (1,000,000 rows) 0.816 with
// 0.02 to 0.1, 0.796 with 1/sqrt(rows) = 0.003, 0.804 with 0.25 (single runs, before the warm-up of
// learning rates worked: two of the same kind differed by up to 0.02).
constexpr float kEmbeddingLimit = 0.05f;

absl::Status CheckWidths(const google::protobuf::RepeatedField<uint32_t>& widths,
                         absl::string_view key) {
  if (widths.empty()) return absl::InvalidArgumentError(absl::StrCat(key, ": names no layers"));
  for (const uint32_t width : widths) {
    if (width == 0)
      return absl::InvalidArgumentError(absl::StrCat(key, ": a layer needs a width above 0"));
  }
  return absl::OkStatus();
}

std::vector<int64_t> Widths(const google::protobuf::RepeatedField<uint32_t>& widths) {
  return {widths.begin(), widths.end()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Dlrm>> Dlrm::FromConfig(const pb::DlrmProto& config) {
  if (config.embedding_dim() == 0) {
    return absl::InvalidArgumentError("model.dlrm.embedding_dim: must be above 0");
  }
  if (config.hash_buckets() <= 0) {
    return absl::InvalidArgumentError("model.dlrm.hash_buckets: must be above 0");
  }
  MU_RETURN_IF_ERROR(CheckWidths(config.bottom_mlp(), "model.dlrm.bottom_mlp"));
  MU_RETURN_IF_ERROR(CheckWidths(config.top_mlp(), "model.dlrm.top_mlp"));
  const uint32_t last = config.bottom_mlp(config.bottom_mlp_size() - 1);
  if (last != config.embedding_dim()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model.dlrm.bottom_mlp: ends in ", last, ", but embedding_dim is ", config.embedding_dim(),
        "; make the two equal, they are multiplied with each other"));
  }
  if (config.top_mlp(config.top_mlp_size() - 1) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("model.dlrm.top_mlp: ends in ",
                                                   config.top_mlp(config.top_mlp_size() - 1),
                                                   ", but must end in 1, the click's logit"));
  }
  return std::unique_ptr<Dlrm>(new Dlrm(config));
}

absl::Status Dlrm::Create(VariableFactory& factory) {
  const int64_t dim = config_.embedding_dim();
  MlpOptions options;
  options.normal_initializers = true;
  options.last_activation = Activation::kRelu;
  MU_ASSIGN_OR_RETURN(bottom_, Mlp::Create(factory, "bottom_mlp", kCriteoDense,
                                           Widths(config_.bottom_mlp()), options));
  options.last_activation = Activation::kNone;
  MU_ASSIGN_OR_RETURN(
      top_, Mlp::Create(factory, "top_mlp", dim + kPairs, Widths(config_.top_mlp()), options));
  for (int field = 0; field < kCriteoCategorical; ++field) {
    MU_ASSIGN_OR_RETURN(
        EmbeddingTable table,
        factory.CreateEmbeddingTable({.name = absl::StrCat("embedding_", field),
                                      .rows = config_.hash_buckets(),
                                      .dim = dim,
                                      .initializer = Uniform{-kEmbeddingLimit, kEmbeddingLimit}}));
    tables_.push_back(std::move(table));
  }
  return absl::OkStatus();
}

Sym Dlrm::Logits(const Sym& dense, const Sym& ids) const {
  const int64_t dim = config_.embedding_dim();
  const Sym bottom = bottom_(dense);
  std::vector<Sym> vectors = {Reshape(bottom, {-1, 1, dim})};
  for (size_t field = 0; field < tables_.size(); ++field) {
    const Sym column = Slice(ids, {0, static_cast<int64_t>(field)}, {-1, 1});
    vectors.push_back(EmbeddingLookup(tables_[field], column));
  }
  const Sym pairs = PairwiseInteractions(Concat(vectors, 1));
  return Reshape(top_(Concat({bottom, pairs}, 1)), {-1});
}

ModelOutput Dlrm::Build(FunctionBuilder&, const BatchRef& batch) {
  ModelOutput output;
  output.task = task();
  const Sym logits = Logits(batch["dense"], batch["ids"]);
  output.prediction = Sigmoid(logits);
  if (batch.Has("label")) {
    output.label = batch["label"];
    output.loss = ReduceMean(SigmoidCrossEntropy(logits, output.label));
  }
  return output;
}

std::vector<pb::ColumnSchema> Dlrm::Columns() const {
  return {MakeColumn("dense", kFloat32, {kUnknownDim, kCriteoDense}),
          MakeColumn("ids", kInt64, {kUnknownDim, kCriteoCategorical}),
          MakeColumn("label", kFloat32, {kUnknownDim})};
}

}  // namespace mu
