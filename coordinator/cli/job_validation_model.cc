// The rules of the models that Muster brings, and what they ask of the data.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"
#include "coordinator/cli/data_keys.h"
#include "coordinator/cli/job_validation.h"
#include "coordinator/frontend/feature_models.h"
#include "coordinator/frontend/model_kinds.h"

namespace mu {
namespace {

constexpr uint32_t kMaxWidth = 1 << 16;
constexpr int64_t kMaxRows = 1'000'000'000'000;

class ModelRules {
 public:
  ModelRules(const pb::JobProto& job, JobUse use, std::vector<JobProblem>* problems)
      : job_(job),
        predicts_(use == JobUse::kPredict),
        trains_(use == JobUse::kTrain || use == JobUse::kCheck),
        problems_(problems) {
    for (const auto& [key, source] : SourcesFor(use, job.data()))
      sources_.emplace_back(key, source);
  }

  void Check() {
    switch (job_.model().kind_case()) {
      case pb::ModelProto::kDlrm:
        return CheckDlrm(job_.model().dlrm());
      case pb::ModelProto::kMatrixFactorization:
        return CheckMatrixFactorization(job_.model().matrix_factorization());
      case pb::ModelProto::kTwoTower:
        CheckInBatchNegatives();
        return CheckConfig();
      case pb::ModelProto::kCustom:
        return;  // its own code knows
      case pb::ModelProto::KIND_NOT_SET:
        return Add("model", "names no model",
                   "write for example model: {dlrm: {...}}; docs/job_file.md lists its keys", true);
      default:
        return CheckConfig();
    }
  }

 private:
  void Add(const std::string& key, std::string message, std::string remedy, bool required = false) {
    problems_->push_back({key, std::move(message), std::move(remedy), required});
  }

  void Width(const std::string& key, int64_t value) {
    if (value < 1 || value > kMaxWidth)
      Add(key, absl::StrCat("must be from 1 to ", kMaxWidth), "16 is usual", true);
  }

  void Layers(const std::string& key, const google::protobuf::RepeatedField<uint32_t>& layers) {
    if (layers.empty())
      Add(key, "names no layers", "write a list of widths such as [64, 16]", true);
    for (int i = 0; i < layers.size(); ++i) {
      if (layers[i] < 1 || layers[i] > kMaxWidth) {
        Add(absl::StrCat(key, "[", i, "]"),
            absl::StrCat("must be from 1 to ", kMaxWidth, ", not ", layers[i]), "");
      }
    }
  }

  // More than any cluster holds is a slip of the keyboard.
  void Rows(const std::string& key, int64_t rows) {
    if (rows > kMaxRows) {
      Add(key, absl::StrCat("must be at most ", kMaxRows, ", not ", rows),
          "a table of so many rows fits nowhere");
    }
  }

  void CheckDlrm(const pb::DlrmProto& dlrm) {
    const std::string key = "model.dlrm";
    Width(key + ".embedding_dim", dlrm.embedding_dim());
    if (dlrm.hash_buckets() < 1)
      Add(key + ".hash_buckets", "must be at least 1", "100000 is usual", true);
    Rows(key + ".hash_buckets", dlrm.hash_buckets());
    Layers(key + ".bottom_mlp", dlrm.bottom_mlp());
    Layers(key + ".top_mlp", dlrm.top_mlp());
    const auto last = [](const auto& list) { return *list.rbegin(); };
    if (!dlrm.bottom_mlp().empty() && dlrm.embedding_dim() > 0 &&
        last(dlrm.bottom_mlp()) != dlrm.embedding_dim()) {
      Add(key + ".bottom_mlp",
          absl::StrCat("ends in ", last(dlrm.bottom_mlp()), ", but embedding_dim is ",
                       dlrm.embedding_dim()),
          "make the two equal: dense features and embeddings are multiplied with each other");
    }
    if (!dlrm.top_mlp().empty() && last(dlrm.top_mlp()) != 1) {
      Add(key + ".top_mlp", absl::StrCat("ends in ", last(dlrm.top_mlp())),
          "end it in 1, the click's logit");
    }
    for (const auto& [source_key, source] : sources_) {
      if (source->format() != "csv") continue;
      Add(source_key + ".format", "is csv, but model dlrm reads criteo_tsv",
          "write format: criteo_tsv");
    }
  }

  // A record alone has no other item to be told from: its loss is 0, whatever the model.
  void CheckInBatchNegatives() {
    const pb::TrainingProto& training = job_.training();
    if (!trains_ || job_.model().two_tower().negatives() == "sampled") return;
    const uint32_t batch = training.has_batch_size() ? training.batch_size() : kDefaultBatchSize;
    const uint32_t slices = std::max<uint32_t>(1, training.micro_batches());
    if (batch == 0 || slices > batch || batch / slices > 1) return;  // 0: told elsewhere
    const bool sliced = batch > 1;
    Add(sliced ? "training.micro_batches" : "training.batch_size",
        absl::StrCat("is ", sliced ? slices : batch, ", which leaves ",
                     sliced ? "slices" : "a batch",
                     " of one record, and model two_tower takes the other records' items for "
                     "negatives: the loss would be 0 and nothing learned"),
        sliced ? "write fewer, or negatives: sampled in the model"
               : "write a larger one, or negatives: sampled in the model");
  }

  // Of a product that servers compute, only they know the gradient.
  void CheckProductsGradient(const std::string& key) {
    const pb::TrainingProto& training = job_.training();
    const std::pair<const char*, bool> refused[] = {
        {"micro_batches", training.micro_batches() > 1},
        {"clip_by_value", training.clip_by_value() > 0},
        {"clip_by_norm", training.clip_by_norm() > 0},
        {"clip_by_global_norm", training.clip_by_global_norm() > 0},
        {"l1", training.l1() > 0},
        {"l2", training.l2() > 0},
        {"weight_decay", training.weight_decay() > 0}};
    for (const auto& [name, given] : refused) {
      if (!given) continue;
      return Add(key, absl::StrCat("is servers, which does not go with training.", name),
                 absl::StrCat("write product: auto, which reads the weights then, or remove "
                              "training.",
                              name));
    }
  }

  // Whether the data has the columns is found when they are looked at (CheckColumns).
  void CheckConfig() {
    std::string name;
    std::vector<ModelProblem> problems;
    if (const ModelKind* const kind = ModelKindOf(job_.model())) {
      name = kind->name;
      problems = kind->problems(job_.model());
    } else {
      const FeatureModelKind& features = *FeatureModelOf(job_.model());
      name = features.name;
      const pb::FeatureModelProto& config = (job_.model().*features.config)();
      problems = FeatureModel::Problems(features, config);
      if (trains_ && problems.empty() && config.product() == "servers")
        CheckProductsGradient(absl::StrCat("model.", name, ".product"));
    }
    for (const ModelProblem& problem : problems) {
      Add(absl::StrCat("model.", name, ".", problem.key), problem.message, problem.remedy,
          problem.required);
    }
  }

  void CheckMatrixFactorization(const pb::MatrixFactorizationProto& model) {
    const std::string key = "model.matrix_factorization";
    Width(key + ".dim", model.dim());
    if (model.users() < 1) Add(key + ".users", "must be at least 1", "user ids are below it", true);
    if (model.items() < 1) Add(key + ".items", "must be at least 1", "item ids are below it", true);
    Rows(key + ".users", model.users());
    Rows(key + ".items", model.items());
    if (model.l2() < 0) Add(key + ".l2", "must not be negative", "leave it out for 0");
    Column(key + ".user_column", model.user_column(), "id", model.users(), true);
    Column(key + ".item_column", model.item_column(), "id", model.items(), true);
    Column(key + ".rating_column", model.rating_column(), "number", 0, false);
    for (const auto& [source_key, source] : sources_) {
      if (source->format() != "criteo_tsv") continue;
      Add(source_key + ".format", "is criteo_tsv, but model matrix_factorization reads csv",
          "write format: csv");
    }
  }

  // `name` must be a column of that kind in every source that is used; ids must stay below `bound`.
  void Column(const std::string& key, const std::string& name, const std::string& kind,
              int64_t bound, bool ids) {
    if (name.empty()) return Add(key, "must name a column of the data", "", true);
    for (const auto& [source_key, source] : sources_) {
      if (source->columns().empty()) continue;
      if (!ids && (predicts_ || source_key == "data.predict"))
        continue;  // what is to be predicted need not be there
      const pb::JobColumnProto* found = nullptr;
      std::vector<std::string> names;
      for (const pb::JobColumnProto& column : source->columns()) {
        names.push_back(column.name());
        if (column.name() == name) found = &column;
      }
      if (found == nullptr) {
        Add(key, absl::StrCat("is `", name, "`, which is no column of ", source_key),
            DidYouMean(name, names).empty()
                ? absl::StrCat("add it to ", source_key, ".columns")
                : absl::StrCat("did you mean `", NearestName(name, names), "`?"));
        continue;
      }
      CheckKind(key, name, kind, source_key, *found, bound, ids);
    }
  }

  void CheckKind(const std::string& key, const std::string& name, const std::string& kind,
                 const std::string& source_key, const pb::JobColumnProto& column, int64_t bound,
                 bool ids) {
    const unsigned bit = KindBitOf(column.kind());
    if (bit == 0) return;  // not a kind at all, which is said where it stands
    const bool fits = column.kind() == kind || (ids && (bit & (kNumberBit | kLabelBit)) == 0);
    if (!fits) {
      Add(key, absl::StrCat("is `", name, "`, which ", source_key, " reads as ", column.kind()),
          absl::StrCat("give that column kind: ", kind));
    } else if (column.has_separator() || column.list()) {
      Add(key, absl::StrCat("is `", name, "`, which ", source_key, " reads as a list"),
          absl::StrCat("remove that column's `", column.list() ? "list" : "separator", "`"));
    } else if (ids && bound > 0 && column.buckets() > bound) {
      Add(key,
          absl::StrCat("is `", name, "` with ids up to ", column.buckets() - 1, " in ", source_key,
                       ", but the model's are below ", bound),
          "make the two equal");
    }
  }

  const pb::JobProto& job_;
  const bool predicts_;
  const bool trains_;
  std::vector<JobProblem>* const problems_;
  std::vector<std::pair<std::string, const pb::SourceProto*>> sources_;
};

}  // namespace

void ValidateModel(const pb::JobProto& job, JobUse use, std::vector<JobProblem>* problems) {
  ModelRules(job, use, problems).Check();
}

}  // namespace mu
