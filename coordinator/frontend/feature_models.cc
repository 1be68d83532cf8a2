#include "coordinator/frontend/feature_models.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coordinator/frontend/image_input.h"

namespace mu {
namespace {

constexpr int64_t kDefaultDim = 16;
constexpr int64_t kDefaultCrossLayers = 3;
constexpr uint32_t kMaxWidth = 1 << 16;
// As DLRM's: products of smaller ones vanish at first.
constexpr Uniform kSmall{-0.05f, 0.05f};

using Config = pb::FeatureModelProto;
using Kind = pb::ModelProto;

// wide, pairs, deep, cross, pooled
constexpr FeatureModelKind kKinds[] = {
    {"logistic_regression", Kind::kLogisticRegression, &Kind::logistic_regression, true, false,
     false, false, false},
    {"factorization_machine", Kind::kFactorizationMachine, &Kind::factorization_machine, true, true,
     false, false, false},
    {"mlp", Kind::kMlp, &Kind::mlp, false, false, true, false, false},
    {"wide_deep", Kind::kWideDeep, &Kind::wide_deep, true, false, true, false, false},
    {"deepfm", Kind::kDeepfm, &Kind::deepfm, true, true, true, false, false},
    {"dcn_v2", Kind::kDcnV2, &Kind::dcn_v2, false, false, true, true, false},
    {"nfm", Kind::kNfm, &Kind::nfm, true, false, true, false, true},
};

std::optional<ProductPlace> PlaceOf(const std::string& text) {
  if (text == "auto") return ProductPlace::kAuto;
  if (text == "servers") return ProductPlace::kServers;
  if (text == "worker") return ProductPlace::kWorker;
  return std::nullopt;
}

void CheckProduct(const FeatureModelKind& kind, const Config& config,
                  std::vector<ModelProblem>* problems) {
  if (!PlaceOf(config.product()).has_value()) {
    problems->push_back(
        {"product", absl::StrCat("must be auto, servers or worker, not `", config.product(), "`"),
         "auto is where fewer bytes move"});
  } else if (!config.has_classes()) {
    problems->push_back(
        {"product", "is for labels of many classes", "write `classes`, or remove it"});
  } else if (!kind.deep && absl::c_none_of(config.features(), [](const pb::FeatureProto& feature) {
               return feature.kind().empty() || feature.kind() == "number";
             })) {
    problems->push_back({"product", "is of the features that are numbers, and there are none",
                         "remove it: of ids only the rows of a batch travel"});
  }
}

}  // namespace

absl::Span<const FeatureModelKind> FeatureModelKinds() { return kKinds; }

const FeatureModelKind* FeatureModelOf(const pb::ModelProto& model) {
  for (const FeatureModelKind& kind : kKinds) {
    if (kind.kind == model.kind_case()) return &kind;
  }
  return nullptr;
}

bool FeatureModel::HasKey(const FeatureModelKind& kind, absl::string_view key) {
  if (key == "embedding_dim") return kind.embeds();
  if (key == "hidden") return kind.deep;
  if (key == "cross_layers") return kind.cross;
  if (key == "classes" || key == "product") return !kind.multiplies();
  return true;
}

std::vector<ModelProblem> FeatureModel::Problems(const FeatureModelKind& kind,
                                                 const Config& config) {
  std::vector<ModelProblem> problems;
  FeatureSet::Check(config.features(), &problems);
  if (config.label_column().empty())
    problems.push_back({"label_column", "must name a column of the data", "", true});
  const auto refuse = [&](bool written, const char* key) {
    if (written && !HasKey(kind, key))
      problems.push_back({key, absl::StrCat("is no key of model ", kind.name), "remove it"});
  };
  refuse(config.has_embedding_dim(), "embedding_dim");
  refuse(!config.hidden().empty(), "hidden");
  refuse(config.has_cross_layers(), "cross_layers");
  refuse(config.has_classes(), "classes");
  refuse(config.has_product(), "product");
  if (!kind.multiplies() && config.has_classes() && config.classes() < 2)
    problems.push_back({"classes", "must be at least 2", "leave it out for labels 0 and 1"});
  if (!kind.multiplies() && config.has_product()) CheckProduct(kind, config, &problems);
  if (kind.embeds() && config.has_embedding_dim() &&
      (config.embedding_dim() < 1 || config.embedding_dim() > kMaxWidth)) {
    problems.push_back({"embedding_dim", absl::StrCat("must be from 1 to ", kMaxWidth), ""});
  }
  if (kind.deep && config.hidden().empty())
    problems.push_back(
        {"hidden", "names no layers", "write a list of widths such as [64, 32]", true});
  for (int i = 0; i < config.hidden_size(); ++i) {
    if (config.hidden(i) < 1 || config.hidden(i) > kMaxWidth) {
      problems.push_back(
          {absl::StrCat("hidden[", i, "]"), absl::StrCat("must be from 1 to ", kMaxWidth), ""});
    }
  }
  if (kind.cross && config.has_cross_layers() && config.cross_layers() < 1)
    problems.push_back({"cross_layers", "must be at least 1", "or take model mlp"});
  return problems;
}

absl::StatusOr<std::unique_ptr<Model>> FeatureModel::FromConfig(const FeatureModelKind& kind,
                                                                const Config& config) {
  const std::vector<ModelProblem> problems = Problems(kind, config);
  if (!problems.empty()) {
    const ModelProblem& first = problems[0];
    return absl::InvalidArgumentError(absl::StrCat("model.", kind.name, ".", first.key, ": ",
                                                   first.message, first.remedy.empty() ? "" : "; ",
                                                   first.remedy));
  }
  return std::unique_ptr<Model>(new FeatureModel(kind, config));
}

FeatureModel::FeatureModel(const FeatureModelKind& kind, const Config& config)
    : kind_(kind),
      label_(config.label_column()),
      classes_(config.classes()),
      product_(PlaceOf(config.product())),
      dim_(config.has_embedding_dim() ? config.embedding_dim() : kDefaultDim),
      hidden_(config.hidden().begin(), config.hidden().end()),
      cross_layers_(config.has_cross_layers() ? config.cross_layers() : kDefaultCrossLayers),
      features_(config.features()) {}

absl::Status FeatureModel::Create(VariableFactory& factory) {
  if (kind_.wide) MU_RETURN_IF_ERROR(CreateWide(factory));
  if (kind_.embeds()) {
    MU_ASSIGN_OR_RETURN(tables_, features_.CreateTables(factory, "embedding", dim_, kSmall));
  }
  if (kind_.multiplies()) {
    MU_ASSIGN_OR_RETURN(
        pairs_, Fm::Create(factory, "pairs", features_.numbers(), dim_, {.initializer = kSmall}));
  }
  return kind_.deep ? CreateDeep(factory) : absl::OkStatus();
}

absl::Status FeatureModel::CreateWide(VariableFactory& factory) {
  MU_ASSIGN_OR_RETURN(weights_, features_.CreateTables(factory, "wide", outputs(), Zeros{}));
  if (features_.numbers() > 0) {
    const bool by_class = product_.has_value();
    const Shape shape = by_class ? Shape({outputs(), features_.numbers()})
                                 : Shape({features_.numbers(), outputs()});
    // As that of a Dense layer's kernel, the name says which of the two it is.
    const std::string name = by_class ? "wide/numbers_by_class" : "wide/numbers";
    MU_ASSIGN_OR_RETURN(number_weights_, factory.CreateVariable({.name = name, .shape = shape}));
  }
  MU_ASSIGN_OR_RETURN(bias_, factory.CreateVariable({.name = "bias", .shape = {outputs()}}));
  return absl::OkStatus();
}

absl::Status FeatureModel::CreateDeep(VariableFactory& factory) {
  const int64_t inputs = kind_.pooled ? dim_ : features_.numbers() + features_.fields() * dim_;
  if (kind_.cross) {
    MU_ASSIGN_OR_RETURN(cross_,
                        CrossNetwork::Create(factory, "cross", inputs, {.layers = cross_layers_}));
  }
  std::vector<int64_t> widths = hidden_;
  widths.push_back(outputs());
  MU_ASSIGN_OR_RETURN(deep_,
                      Mlp::Create(factory, "deep", inputs, widths, {.last_product = product_}));
  return absl::OkStatus();
}

Sym FeatureModel::Wide(const BatchRef& batch) const {
  std::vector<Sym> parts = features_.Lookup(weights_, batch);
  if (features_.numbers() > 0) {
    const Sym numbers = features_.Numbers(batch);
    parts.push_back(product_.has_value()
                        ? ShardedMatMul(numbers, number_weights_, {.place = *product_})
                        : MatMul(numbers, Read(number_weights_)));
  }
  if (classes_ == 0) return ReduceSum(Concat(parts, 1), {1}) + bias_;
  Sym sum = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) sum = sum + parts[i];
  return sum + bias_;
}

Sym FeatureModel::Deep(const Sym& first) const {
  const Sym logits = deep_(cross_(first));
  return classes_ == 0 ? Reshape(logits, {-1}) : logits;
}

Sym FeatureModel::Logits(const BatchRef& batch) const {
  std::vector<Sym> parts;
  if (kind_.wide) parts.push_back(Wide(batch));
  if (kind_.embeds()) {
    std::vector<Sym> vectors = features_.Lookup(tables_, batch);
    const Sym numbers = features_.numbers() > 0 ? features_.Numbers(batch) : Sym();
    if (kind_.pairs) parts.push_back(pairs_(vectors, numbers));
    if (kind_.pooled) {
      parts.push_back(Deep(pairs_.Products(vectors, numbers)));
    } else if (kind_.deep) {
      if (features_.numbers() > 0) vectors.push_back(numbers);
      parts.push_back(Deep(vectors.size() == 1 ? vectors[0] : Concat(vectors, 1)));
    }
  }
  Sym logits = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) logits = logits + parts[i];
  return logits;
}

ModelOutput FeatureModel::Build(FunctionBuilder&, const BatchRef& batch) {
  const Sym logits = Logits(batch);
  if (classes_ > 0) return ClassOutput(logits, label_, batch);
  ModelOutput output;
  output.task = task();
  output.prediction = Sigmoid(logits);
  if (batch.Has(label_)) {
    output.label = batch[label_];
    output.loss = ReduceMean(SigmoidCrossEntropy(logits, output.label));
  }
  return output;
}

std::map<std::string, int64_t> FeatureModel::IdBounds() const {
  std::map<std::string, int64_t> bounds = features_.IdBounds();
  if (classes_ > 0) bounds[label_] = classes_;
  return bounds;
}

std::vector<pb::ColumnSchema> FeatureModel::Columns() const {
  std::vector<pb::ColumnSchema> columns = features_.Columns();
  columns.push_back(MakeColumn(label_, classes_ > 0 ? kInt64 : kFloat32, {kUnknownDim}));
  return columns;
}

}  // namespace mu
