#include "coordinator/frontend/two_tower.h"

#include "absl/strings/str_cat.h"
#include "coordinator/frontend/config_rules.h"
#include "coordinator/frontend/losses.h"

namespace mu {
namespace {

constexpr int64_t kDefaultDim = 32;
constexpr int64_t kDefaultSampled = 100;
constexpr float kDefaultTemperature = 0.1f;
constexpr Uniform kSmall{-0.05f, 0.05f};
// Drawn as float32, which has all whole numbers up to here.
constexpr int64_t kMostDrawn = 1 << 24;

// An item that is known by one id, so that others can be drawn.
bool IsOneId(const FeatureSet::Config& features) {
  return features.size() == 1 && features[0].kind() == "id" && !features[0].has_size();
}

bool Samples(const pb::TwoTowerProto& config) { return config.negatives() == "sampled"; }

}  // namespace

std::vector<ModelProblem> TwoTower::Problems(const pb::TwoTowerProto& config) {
  std::vector<ModelProblem> problems;
  ConfigRules rules(&problems);
  rules.Features("user", config.user());
  rules.Features("item", config.item());
  if (config.has_embedding_dim()) rules.Range("embedding_dim", config.embedding_dim(), 1, 1 << 16);
  rules.Widths("hidden", config.hidden());
  if (config.has_temperature() && !(config.temperature() > 0))
    rules.Add("temperature", "must be above 0", "0.1 is usual");
  if (config.has_negatives() && config.negatives() != "in_batch" && !Samples(config)) {
    rules.Add("negatives", absl::StrCat("is `", config.negatives(), "`"),
              "write in_batch or sampled");
  }
  if (!Samples(config)) {
    if (config.has_sampled())
      rules.Add("sampled", "is for negatives: sampled", "write that, or remove it");
    return problems;
  }
  if (config.has_sampled()) rules.Range("sampled", config.sampled(), 1, 1 << 20, "100 is usual");
  if (config.has_frequency_column()) {
    rules.Add("frequency_column", "is for negatives: in_batch",
              "remove it: items are drawn uniformly, so nothing is to be corrected");
  }
  if (!IsOneId(config.item())) {
    rules.Add("item", "is not one id, so no items can be drawn",
              "write negatives: in_batch, or one feature of kind id");
  } else if (config.item(0).rows() > kMostDrawn) {
    rules.Add("item[0].rows", absl::StrCat("must be at most ", kMostDrawn, " to draw items"),
              "write negatives: in_batch");
  }
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> TwoTower::FromConfig(const pb::TwoTowerProto& config) {
  MU_RETURN_IF_ERROR(FirstProblem("two_tower", Problems(config)));
  return std::unique_ptr<Model>(new TwoTower(config));
}

TwoTower::TwoTower(const pb::TwoTowerProto& config)
    : config_(config),
      temperature_(config.has_temperature() ? config.temperature() : kDefaultTemperature),
      user_{FeatureSet(config.user()), {}, {}},
      item_{FeatureSet(config.item()), {}, {}} {}

absl::Status TwoTower::Tower::Create(VariableFactory& factory, const std::string& name, int64_t dim,
                                     const std::vector<int64_t>& widths) {
  MU_ASSIGN_OR_RETURN(tables, features.CreateTables(factory, name, dim, kSmall));
  MU_ASSIGN_OR_RETURN(layers, Mlp::Create(factory, name + "_tower",
                                          features.numbers() + features.fields() * dim, widths));
  return absl::OkStatus();
}

Sym TwoTower::Tower::operator()(const BatchRef& batch) const {
  std::vector<Sym> parts = features.Lookup(tables, batch);
  if (features.numbers() > 0) parts.push_back(features.Numbers(batch));
  return L2Normalize(layers(parts.size() == 1 ? parts[0] : Concat(parts, 1)));
}

Sym TwoTower::Tower::OfIds(const Sym& ids) const {
  return L2Normalize(layers(EmbeddingLookup(tables[0], ids)));
}

absl::Status TwoTower::Create(VariableFactory& factory) {
  const int64_t dim = config_.has_embedding_dim() ? config_.embedding_dim() : kDefaultDim;
  const std::vector<int64_t> widths(config_.hidden().begin(), config_.hidden().end());
  MU_RETURN_IF_ERROR(user_.Create(factory, "user", dim, widths));
  return item_.Create(factory, "item", dim, widths);
}

Sym TwoTower::Loss(const Sym& users, const Sym& items, const BatchRef& batch) const {
  const Sym ids = IsOneId(config_.item()) ? batch[config_.item(0).column()] : Sym();
  if (Samples(config_)) {
    const int64_t sampled = config_.has_sampled() ? config_.sampled() : kDefaultSampled;
    const Sym like = ConstantTensor(Tensor(kFloat32, {sampled}));
    const Sym drawn =
        Cast(RandomUniform(like, 0, static_cast<float>(config_.item(0).rows())), kInt64);
    return SampledSoftmaxLoss(
        users, items, item_.OfIds(drawn),
        {.temperature = temperature_, .positive_ids = ids, .negative_ids = drawn});
  }
  InBatchSoftmaxOptions options{.temperature = temperature_, .ids = ids};
  // How often an item is in the data is its probability of being in a batch, but for a factor that
  // softmax does not see.
  if (batch.Has(config_.frequency_column())) options.log_q = Log(batch[config_.frequency_column()]);
  return InBatchSoftmaxLoss(users, items, options);
}

ModelOutput TwoTower::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym users = user_(batch);
  const Sym items = item_(batch);
  ModelOutput output;
  output.task = task();
  output.prediction = ReduceSum(users * items, {1}) * (1.0f / temperature_);
  output.loss = ReduceMean(Loss(users, items, batch));
  if (batch.Has(config_.label_column())) output.label = batch[config_.label_column()];
  return output;
}

std::vector<pb::ColumnSchema> TwoTower::Columns() const { return ColumnsFor(DataPurpose::kEval); }

std::vector<pb::ColumnSchema> TwoTower::ColumnsFor(DataPurpose purpose) const {
  std::vector<pb::ColumnSchema> columns = user_.features.Columns();
  for (pb::ColumnSchema& column : item_.features.Columns()) columns.push_back(std::move(column));
  if (purpose == DataPurpose::kTrain && config_.has_frequency_column())
    columns.push_back(MakeColumn(config_.frequency_column(), kFloat32, {kUnknownDim}));
  if (purpose != DataPurpose::kEval) return columns;
  columns.push_back(MakeColumn(config_.label_column(), kFloat32, {kUnknownDim}));
  return columns;
}

std::map<std::string, int64_t> TwoTower::IdBounds() const {
  std::map<std::string, int64_t> bounds = user_.features.IdBounds();
  bounds.merge(item_.features.IdBounds());
  return bounds;
}

}  // namespace mu
