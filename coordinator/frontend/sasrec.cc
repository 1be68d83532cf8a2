#include "coordinator/frontend/sasrec.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/config_rules.h"
#include "coordinator/frontend/neural_ops.h"
#include "coordinator/frontend/sequence_input.h"

namespace mu {
namespace {

constexpr int64_t kDefaultDim = 48;
constexpr int64_t kDefaultBlocks = 2;
constexpr float kDefaultDropout = 0.2f;
constexpr Normal kSmall{0.0f, 0.02f};
// Drawn as float32, which has all whole numbers up to here.
constexpr int64_t kMostItems = 1 << 24;

int64_t HeadsOf(const pb::SasRecProto& config) { return config.has_heads() ? config.heads() : 1; }

}  // namespace

std::vector<ModelProblem> SasRec::Problems(const pb::SasRecProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  rules.Column("sequence_column", config.sequence_column());
  CheckLength(config.length(), &rules);
  rules.Range("items", config.items(), 2, kMostItems, "ids are below it, 0 is padding", true);
  const int64_t dim = config.has_embedding_dim() ? config.embedding_dim() : kDefaultDim;
  rules.Range("embedding_dim", dim, 1, 1 << 16);
  if (config.has_blocks()) rules.Range("blocks", config.blocks(), 1, 1000, "2 is usual");
  const int64_t heads = HeadsOf(config);
  if (heads < 1 || (dim > 0 && dim % heads != 0)) {
    rules.Add("heads", absl::StrCat("is ", heads, ", but embedding_dim ", dim,
                                    " cannot be cut into so many equal parts"));
  }
  if (config.has_dropout()) rules.Dropout("dropout", config.dropout());
  rules.Column("item_column", config.item_column());
  rules.Column("label_column", config.label_column());
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> SasRec::FromConfig(const pb::SasRecProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("sasrec", Problems(config)));
  return std::unique_ptr<Model>(new SasRec(config));
}

SasRec::SasRec(const pb::SasRecProto& config)
    : config_(config),
      length_(config.length()),
      dim_(config.has_embedding_dim() ? config.embedding_dim() : kDefaultDim),
      dropout_(config.has_dropout() ? config.dropout() : kDefaultDropout) {}

absl::Status SasRec::Create(VariableFactory& factory) {
  MU_ASSIGN_OR_RETURN(
      items_, factory.CreateEmbeddingTable(
                  {.name = "items", .rows = config_.items(), .dim = dim_, .initializer = kSmall}));
  MU_ASSIGN_OR_RETURN(positions_,
                      factory.CreateVariable(
                          {.name = "positions", .shape = {length_, dim_}, .initializer = kSmall}));
  const int64_t blocks = config_.has_blocks() ? config_.blocks() : kDefaultBlocks;
  for (int64_t i = 0; i < blocks; ++i) {
    const std::string name = absl::StrCat("block_", i, "/");
    Block block;
    MU_ASSIGN_OR_RETURN(block.attention_norm,
                        LayerNorm::Create(factory, name + "attention_norm", dim_));
    MU_ASSIGN_OR_RETURN(
        block.attention,
        MultiHeadAttention::Create(factory, name + "attention", dim_, {.heads = HeadsOf(config_)}));
    MU_ASSIGN_OR_RETURN(block.dense_norm, LayerNorm::Create(factory, name + "dense_norm", dim_));
    MU_ASSIGN_OR_RETURN(block.first, Dense::Create(factory, name + "dense_0", dim_, dim_,
                                                   {.activation = Activation::kRelu}));
    MU_ASSIGN_OR_RETURN(block.second, Dense::Create(factory, name + "dense_1", dim_, dim_));
    blocks_.push_back(std::move(block));
  }
  MU_ASSIGN_OR_RETURN(norm_, LayerNorm::Create(factory, "norm", dim_));
  return absl::OkStatus();
}

Sym SasRec::Drop(const Sym& x) const { return dropout_ > 0 ? Dropout(x, dropout_) : x; }

Sym SasRec::States(const Sym& ids, int64_t n) const {
  const Sym places = Slice(positions_, {0, 0}, {n, dim_});
  Sym x = Drop(EmbeddingLookup(items_, ids) * std::sqrt(static_cast<float>(dim_)) + places);
  for (const Block& block : blocks_) {
    x = x + Drop(block.attention(block.attention_norm(x), {.causal = true}));
    x = x + Drop(block.second(Drop(block.first(block.dense_norm(x)))));
  }
  return norm_(x);
}

Sym SasRec::NextItemLoss(const Sym& sequence) const {
  const int64_t n = length_ - 1;
  const Sym states = States(Slice(sequence, {0, 0}, {-1, n}), n);
  const Sym next = Slice(sequence, {0, 1}, {-1, n});
  const Sym drawn =
      Cast(RandomUniform(Cast(next, kFloat32), 1.0f, static_cast<float>(config_.items())), kInt64);
  const Sym chosen = ReduceSum(states * EmbeddingLookup(items_, next), {2});
  const Sym other = ReduceSum(states * EmbeddingLookup(items_, drawn), {2});
  const Sym there = Cast(Cast(next, kBool), kFloat32);
  const Sym loss = (Softplus(-chosen) + Softplus(other)) * there;
  return ReduceSum(loss) / Maximum(ReduceSum(there), 1.0f);
}

Sym SasRec::Score(const Sym& sequence, const Sym& lengths, const Sym& candidates) const {
  // In training the last item of a full sequence is only predicted, so the last row of positions_
  // is never trained: of a full sequence the newest items are taken, without the first.
  const int64_t n = length_ - 1;
  const Sym is_full = Reshape(GreaterEqual(lengths, length_), {-1, 1});
  const Sym newest =
      Where(is_full, Slice(sequence, {0, 1}, {-1, n}), Slice(sequence, {0, 0}, {-1, n}));
  const Sym last = OneHot(Minimum(lengths, n) - 1, n);
  const Sym states = States(newest, n);
  const Sym state = ReduceSum(states * Reshape(last, {-1, n, 1}), {1});
  return ReduceSum(state * EmbeddingLookup(items_, candidates), {1});
}

ModelOutput SasRec::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym sequence = batch[config_.sequence_column()];
  ModelOutput output;
  output.task = task();
  output.loss = NextItemLoss(sequence);
  if (!batch.Has(config_.item_column())) return output;
  output.prediction =
      Score(sequence, batch[LengthColumn(config_.sequence_column())], batch[config_.item_column()]);
  if (batch.Has(config_.label_column())) output.label = batch[config_.label_column()];
  return output;
}

std::vector<pb::ColumnSchema> SasRec::Columns() const { return ColumnsFor(DataPurpose::kEval); }

std::vector<pb::ColumnSchema> SasRec::ColumnsFor(DataPurpose purpose) const {
  std::vector<pb::ColumnSchema> columns = SequenceColumns(config_.sequence_column(), length_);
  if (purpose == DataPurpose::kTrain) return columns;
  columns.push_back(MakeColumn(config_.item_column(), kInt64, {kUnknownDim}));
  if (purpose == DataPurpose::kPredict) return columns;
  columns.push_back(MakeColumn(config_.label_column(), kFloat32, {kUnknownDim}));
  return columns;
}

std::map<std::string, int64_t> SasRec::IdBounds() const {
  return {{config_.sequence_column(), config_.items()}, {config_.item_column(), config_.items()}};
}

}  // namespace mu
