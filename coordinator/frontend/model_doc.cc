#include "coordinator/frontend/model_doc.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "coordinator/frontend/feature_models.h"
#include "coordinator/frontend/model_doc_keys.h"

namespace mu {
namespace {

ModelDoc DlrmDoc() {
  ModelDoc doc{"dlrm", "Probability of a click, of criteo_tsv (Naumov et al., 2019)", {}};
  AddKeys(pb::DlrmProto::descriptor(), "",
          {{"embedding_dim", "", "length of a row of each of the 26 tables"},
           {"hash_buckets", "", "rows of each table"},
           {"bottom_mlp", "", "widths of the layers over the numbers; the last is `embedding_dim`"},
           {"top_mlp", "", "widths of the layers over the products; the last is 1"}},
          &doc);
  return doc;
}

constexpr char kIdColumn[] =
    "name of a column of kind `id`, `hash`, `vocabulary`, `class`, `bucket` or `cross`";

ModelDoc MatrixFactorizationDoc() {
  ModelDoc doc{"matrix_factorization", "A rating, by vectors and biases of users and items", {}};
  AddKeys(pb::MatrixFactorizationProto::descriptor(), "",
          {{"dim", "", "length of the vectors of users and items"},
           {"users", "", "number of users; their ids are below it"},
           {"items", "", "number of items; their ids are below it"},
           {"user_column", "", kIdColumn},
           {"item_column", "", kIdColumn},
           {"rating_column", "", "name of a column of kind `number`; `predict` does not need it"},
           {"global_mean", "0", "added to every prediction"},
           {"l2", "0", "weight of the squares of a batch's vectors and biases"}},
          &doc);
  return doc;
}

struct KindText {
  const char* name;
  const char* what;
};
constexpr KindText kFeatureModels[] = {
    {"logistic_regression", "Probability that a label is 1: a weight for each row and number"},
    {"factorization_machine",
     "Probability that a label is 1: weights, and products of the vectors of all pairs of features "
     "(Rendle, 2010)"},
    {"mlp", "Probability that a label is 1: layers over the features' vectors"},
    {"wide_deep",
     "Probability that a label is 1: the sum of `logistic_regression` and `mlp` (Cheng et al., "
     "2016)"},
    {"deepfm",
     "Probability that a label is 1: the sum of `factorization_machine` and `mlp`, with the same "
     "vectors (Guo et al., 2017)"},
    {"nfm",
     "Probability that a label is 1: the sum of `logistic_regression` and of layers over the "
     "products "
     "of the vectors of all pairs of features, added up to one vector (He and Chua, 2017)"},
    {"dcn_v2", "Probability that a label is 1: `mlp` behind cross layers (Wang et al., 2021)"},
};

ModelDoc FeatureModelDoc(const FeatureModelKind& kind) {
  ModelDoc doc{kind.name, "", {}};
  for (const KindText& text : kFeatureModels) {
    if (doc.name == text.name) doc.what = text.what;
  }
  MU_CHECK(!doc.what.empty());
  const auto* const message = pb::FeatureModelProto::descriptor();
  AddKeys(message, "", {{"features", "", "the columns that it reads"}}, &doc);
  AddFeatureKeys("features.", &doc);
  AddKeys(message, "",
          {{"label_column", "",
            "name of a column of kind `label`, or `number` with values 0 and 1; `label` in "
            "`criteo_tsv`, `libsvm` and `libffm`. `predict` does not need it"}},
          &doc);
  if (kind.embeds()) {
    AddKeys(message, "", {{"embedding_dim", "16", "length of the vectors"}}, &doc);
  }
  if (kind.deep) {
    AddKeys(message, "", {{"hidden", "", "widths of the layers before the logit"}}, &doc);
  }
  if (kind.cross) {
    AddKeys(message, "", {{"cross_layers", "3", "number of cross layers"}}, &doc);
  }
  if (!kind.multiplies()) {
    AddKeys(
        message, "",
        {{"classes", "none",
          "the label is one of so many classes: a column of kind `class` or `id`, ids are below "
          "it"},
         {"product", "none",
          "with `classes`, for many of them: where the weights of the logits are multiplied, those "
          "of the last layer and of numbers. `auto`: where fewer bytes move; `servers`: each with "
          "its part; `worker`: it reads them. Their rows are then the classes and their names "
          "`deep_N/kernel_by_output` and `wide/numbers_by_class`, so checkpoints of models without "
          "it do not fit. `servers` goes with none of `training.micro_batches`, `l1`, `l2`, "
          "`weight_decay` and `clip_by_...`; `auto` reads the weights there"}},
        &doc);
  }
  return doc;
}

}  // namespace

std::vector<ModelDoc> BuiltinModelDocs() {
  std::vector<ModelDoc> docs = {DlrmDoc(), MatrixFactorizationDoc()};
  for (const FeatureModelKind& kind : FeatureModelKinds()) docs.push_back(FeatureModelDoc(kind));
  for (ModelDoc& doc : ModelKindDocs()) docs.push_back(std::move(doc));
  return docs;
}

std::string KeyTable(const ModelDoc& doc) {
  std::string text = "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const ModelKeyDoc& key : doc.keys) {
    absl::StrAppend(&text, "| `", key.key, "` | ", key.type, " | ",
                    key.default_value.empty() ? "required" : key.default_value, " | ", key.meaning,
                    " |\n");
  }
  return text;
}

}  // namespace mu
