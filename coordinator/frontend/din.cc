#include "coordinator/frontend/din.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/config_rules.h"
#include "coordinator/frontend/sequence_input.h"

namespace mu {
namespace {

constexpr int64_t kDefaultDim = 16;
constexpr Uniform kSmall{-0.05f, 0.05f};

std::vector<int64_t> ToLogit(const google::protobuf::RepeatedField<uint32_t>& hidden) {
  std::vector<int64_t> widths(hidden.begin(), hidden.end());
  widths.push_back(1);
  return widths;
}

}  // namespace

std::vector<ModelProblem> Din::Problems(const pb::DinProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  if (!config.features().empty()) rules.Features("features", config.features());
  rules.Column("history_column", config.history_column());
  CheckLength(config.length(), &rules);
  rules.Column("item_column", config.item_column());
  rules.Rows("items", config.items());
  if (config.has_embedding_dim()) rules.Range("embedding_dim", config.embedding_dim(), 1, 1 << 16);
  rules.Widths("attention_hidden", config.attention_hidden());
  rules.Widths("hidden", config.hidden());
  rules.Column("label_column", config.label_column());
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> Din::FromConfig(const pb::DinProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("din", Problems(config)));
  return std::unique_ptr<Model>(new Din(config));
}

Din::Din(const pb::DinProto& config)
    : config_(config),
      dim_(config.has_embedding_dim() ? config.embedding_dim() : kDefaultDim),
      features_(config.features()) {}

absl::Status Din::Create(VariableFactory& factory) {
  MU_ASSIGN_OR_RETURN(
      items_, factory.CreateEmbeddingTable(
                  {.name = "items", .rows = config_.items(), .dim = dim_, .initializer = kSmall}));
  MU_ASSIGN_OR_RETURN(tables_, features_.CreateTables(factory, "feature", dim_, kSmall));
  MU_ASSIGN_OR_RETURN(
      attention_, Mlp::Create(factory, "attention", 4 * dim_, ToLogit(config_.attention_hidden())));
  const int64_t inputs = features_.numbers() + (features_.fields() + 2) * dim_;
  MU_ASSIGN_OR_RETURN(deep_, Mlp::Create(factory, "deep", inputs, ToLogit(config_.hidden())));
  return absl::OkStatus();
}

Sym Din::Interest(const Sym& history, const Sym& candidate, const Sym& lengths) const {
  const int64_t length = config_.length();
  const Sym beside = OnesLike(history) * Reshape(candidate, {-1, 1, dim_});
  const Sym pairs = Concat({history, beside, history - beside, history * beside}, 2);
  const Sym weights = attention_(pairs);  // [batch, length, 1]
  const Sym there = Reshape(Cast(SequenceMask(lengths, length), kFloat32), {-1, length, 1});
  return ReduceSum(history * weights * there, {1});
}

ModelOutput Din::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym history = EmbeddingLookup(items_, batch[config_.history_column()]);
  const Sym candidate = EmbeddingLookup(items_, batch[config_.item_column()]);
  std::vector<Sym> parts = {
      Interest(history, candidate, batch[LengthColumn(config_.history_column())]), candidate};
  for (Sym& vector : features_.Lookup(tables_, batch)) parts.push_back(std::move(vector));
  if (features_.numbers() > 0) parts.push_back(features_.Numbers(batch));
  const Sym logits = Reshape(deep_(Concat(parts, 1)), {-1});

  ModelOutput output;
  output.task = task();
  output.prediction = Sigmoid(logits);
  if (batch.Has(config_.label_column())) {
    output.label = batch[config_.label_column()];
    output.loss = ReduceMean(SigmoidCrossEntropy(logits, output.label));
  }
  return output;
}

std::vector<pb::ColumnSchema> Din::Columns() const {
  std::vector<pb::ColumnSchema> columns = features_.Columns();
  for (pb::ColumnSchema& column : SequenceColumns(config_.history_column(), config_.length()))
    columns.push_back(std::move(column));
  columns.push_back(MakeColumn(config_.item_column(), kInt64, {kUnknownDim}));
  columns.push_back(MakeColumn(config_.label_column(), kFloat32, {kUnknownDim}));
  return columns;
}

std::map<std::string, int64_t> Din::IdBounds() const {
  std::map<std::string, int64_t> bounds = features_.IdBounds();
  for (const std::string& column : {config_.history_column(), config_.item_column()})
    bounds[column] = config_.items();
  return bounds;
}

}  // namespace mu
