// The models that read any features: gradients, learning, the formulas of their parts, and mistakes
// in their configuration.
#include "coordinator/frontend/feature_models.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/frontend/model_registry.h"
#include "tests/coordinator/autodiff/check_gradients.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr int64_t kDim = 3;

pb::FeatureProto* AddFeature(pb::FeatureModelProto* config, const char* column, const char* kind,
                             uint32_t size, int64_t rows) {
  pb::FeatureProto* const feature = config->add_features();
  feature->set_column(column);
  if (*kind != '\0') feature->set_kind(kind);
  if (size > 0) feature->set_size(size);
  if (rows > 0) feature->set_rows(rows);
  return feature;
}

// Data with a batch of it, and the features that are its columns.
struct Case {
  const char* name;
  Dataset data;
  Batch batch;
  pb::FeatureModelProto features;
};

Case CriteoCase() {
  Case c{"criteo", CriteoDataset(), CriteoBatch(8), {}};
  AddFeature(&c.features, "dense", "", 13, 0);
  AddFeature(&c.features, "ids", "id", 26, 7);
  return c;
}

// Lists only, some of them empty.
Case LibsvmCase() {
  Case c{"libsvm", MakeDataset(Libsvm({"x"}, 6).Batch(4)), {}, {}};
  c.batch.records = 4;
  c.batch.names = {"label", "features.values", "features.splits", "features.weights"};
  c.batch.columns = {Tensor::Of<float>({4}, {1, 0, 1, 0}), Tensor::Of<int64_t>({4}, {0, 3, 5, 3}),
                     Tensor::Of<int32_t>({5}, {0, 2, 2, 3, 4}),
                     Tensor::Of<float>({4}, {0.5f, -1, 2, 1})};
  AddFeature(&c.features, "features", "weighted_list", 0, 6);
  return c;
}

Case CsvCase() {
  pb::CsvColumnProto words;
  words.set_name("words");
  words.set_kind(pb::CsvColumnProto::HASH);
  words.set_buckets(5);
  words.set_separator("|");
  words.set_index(-1);
  Case c{"csv",
         MakeDataset(
             Csv({"x"}).Header().Number("x").Id("id").Column(words).Label("label", {"1"}).Batch(3)),
         {},
         {}};
  c.batch.records = 3;
  c.batch.names = {"x", "id", "words.values", "words.splits", "label"};
  c.batch.columns = {Tensor::Of<float>({3}, {1, -2, 3}), Tensor::Of<int64_t>({3}, {2, 0, 3}),
                     Tensor::Of<int64_t>({3}, {4, 1, 4}), Tensor::Of<int32_t>({4}, {0, 2, 2, 3}),
                     Tensor::Of<float>({3}, {1, 0, 0})};
  pb::FeatureProto* const x = AddFeature(&c.features, "x", "number", 0, 0);
  x->set_mean(0.5f);
  x->set_stddev(2.0f);
  AddFeature(&c.features, "id", "id", 0, 4);
  AddFeature(&c.features, "words", "list", 0, 5);
  return c;
}

pb::ModelProto ConfigOf(const FeatureModelKind& kind, pb::FeatureModelProto config) {
  config.set_label_column("label");
  if (kind.embeds()) config.set_embedding_dim(kDim);
  if (kind.deep) {
    config.add_hidden(5);
    config.add_hidden(4);
  }
  if (kind.cross) config.set_cross_layers(2);
  pb::ModelProto model;
  const google::protobuf::FieldDescriptor* const field =
      model.GetDescriptor()->FindFieldByName(kind.name);
  model.GetReflection()->MutableMessage(&model, field)->CopyFrom(config);
  return model;
}

absl::StatusOr<pb::FunctionProto> TrainStep(Model& model, const Dataset& data) {
  return Trace("train", [&](FunctionBuilder& f) {
    const ModelOutput output = model.Build(f, f.NextBatch(data));
    f.Minimize(output.loss);
    f.Return("loss", output.loss);
    f.Return("prediction", output.prediction);
  });
}

// All parameters, by name, with values of no pattern. Hidden layers have biases that keep their
// units on: where a ReLU switches, finite differences say nothing.
std::map<std::string, absl::Span<float>> Randomise(testing::FakeFactory& factory) {
  std::map<std::string, absl::Span<float>> values;
  SplitMix random(7);
  for (const auto& [id, name] : factory.parameters.names) {
    values[name] = id.first ? absl::MakeSpan(factory.parameters.table(id.second).values)
                            : factory.parameters.variable(id.second).flat<float>();
    const bool keeps_on = absl::EndsWith(name, "/bias") && absl::StartsWith(name, "deep_") &&
                          !absl::StartsWith(name, "deep_2");
    for (float& value : values[name])
      value = static_cast<float>(0.4 * random.Unit() - 0.2 + (keeps_on ? 1.5 : 0));
  }
  return values;
}

TEST(FeatureModels, GradientsOfAllParametersAreRightOnAllKindsOfData) {
  for (const FeatureModelKind& kind : FeatureModelKinds()) {
    for (const Case& c : {CriteoCase(), LibsvmCase(), CsvCase()}) {
      if (kind.cross && c.name == std::string("criteo")) continue;  // 16,000 numbers: seconds
      SCOPED_TRACE(absl::StrCat(kind.name, " on ", c.name));
      testing::FakeFactory factory;
      MU_ASSERT_OK_AND_ASSIGN(auto model,
                              ModelRegistry::WithBuiltins().Create(ConfigOf(kind, c.features)));
      MU_ASSERT_OK(CheckColumns(*model, c.data.proto(), DataPurpose::kEval));
      MU_ASSERT_OK(model->Create(factory));
      MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, c.data));
      const auto values = Randomise(factory);
      GradientChecker checker(f, factory.parameters, &c.batch);
      int left = 2;  // of a model with 52 tables some are enough
      for (const auto& [name, own] : values) {
        if (absl::StrContains(name, "/ids_") && --left < 0) continue;
        checker.Check(name, own);
      }
    }
  }
}

TEST(FeatureModels, EachLearnsTheLabelsOfABatch) {
  for (const FeatureModelKind& kind : FeatureModelKinds()) {
    SCOPED_TRACE(kind.name);
    Case c = CriteoCase();
    testing::FakeFactory factory(/*learning_rate=*/0.1f);
    MU_ASSERT_OK_AND_ASSIGN(auto model,
                            ModelRegistry::WithBuiltins().Create(ConfigOf(kind, c.features)));
    MU_ASSERT_OK(model->Create(factory));
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, c.data));
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(f, factory.parameters.routing()));
    Executor executor(compiled);
    factory.parameters.apply = true;
    StepInputs inputs;
    inputs.batch = &c.batch;
    std::vector<Tensor> returns;
    for (int step = 0; step < 400; ++step)
      MU_ASSERT_OK(executor.RunStep(inputs, factory.parameters, &returns));
    EXPECT_LT(*returns[0].data<float>(), 0.1f);
  }
}

// The factorization machine of (x - 0.5) / 2, an id and a list, by the sum over all pairs that
// defines it.
TEST(FeatureModels, PairsAreTheProductsOfAllPairs) {
  const Case c = CsvCase();
  const FeatureModelKind& kind = FeatureModelKinds()[1];
  ASSERT_STREQ(kind.name, "factorization_machine");
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(auto model,
                          ModelRegistry::WithBuiltins().Create(ConfigOf(kind, c.features)));
  MU_ASSERT_OK(model->Create(factory));
  auto values = Randomise(factory);
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, c.data));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(f, factory.parameters.routing()));
  Executor executor(compiled);
  StepInputs inputs;
  inputs.batch = &c.batch;
  std::vector<Tensor> returns;
  MU_ASSERT_OK(executor.RunStep(inputs, factory.parameters, &returns));

  const std::vector<std::vector<int>> words = {{4, 1}, {}, {4}};
  for (int record = 0; record < 3; ++record) {
    const float x = (c.batch.columns[0].data<float>()[record] - 0.5f) / 2.0f;
    const auto id = static_cast<size_t>(c.batch.columns[1].data<int64_t>()[record]);
    double logit = values["bias"][0] + x * values["wide/numbers"][0] + values["wide/id"][id];
    std::vector<std::vector<double>> vectors(3, std::vector<double>(kDim));
    for (const int word : words[record]) logit += values["wide/words"][word];
    for (int d = 0; d < kDim; ++d) {
      vectors[0][d] = x * values["pairs/numbers"][d];
      vectors[1][d] = values["embedding/id"][id * kDim + d];
      for (const int word : words[record])
        vectors[2][d] += values["embedding/words"][word * kDim + d];
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < i; ++j) {
        for (int d = 0; d < kDim; ++d) logit += vectors[i][d] * vectors[j][d];
      }
    }
    EXPECT_NEAR(returns[1].data<float>()[record], 1 / (1 + std::exp(-logit)), 1e-6) << record;
  }
}

TEST(FeatureModels, MistakesNameTheKey) {
  const auto refusal = [](const char* name,
                          const std::function<void(pb::FeatureModelProto*)>& change) {
    for (const FeatureModelKind& kind : FeatureModelKinds()) {
      if (std::string(kind.name) != name) continue;
      pb::ModelProto model = ConfigOf(kind, CsvCase().features);
      pb::FeatureModelProto config = (model.*kind.config)();
      change(&config);
      return FeatureModel::FromConfig(kind, config).status();
    }
    return absl::NotFoundError(name);
  };
  const auto expect = [&](const char* name, const char* message,
                          const std::function<void(pb::FeatureModelProto*)>& change) {
    EXPECT_THAT(refusal(name, change),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  expect("mlp", "model.mlp.features: names no columns", [](auto* c) { c->clear_features(); });
  expect("mlp", "model.mlp.features[0].column: must name",
         [](auto* c) { c->mutable_features(0)->clear_column(); });
  expect("mlp", "model.mlp.features[2].column: is `id`, as is an earlier",
         [](auto* c) { c->mutable_features(2)->set_column("id"); });
  expect("mlp", "features[1].kind: is `ids`; write number, id, list",
         [](auto* c) { c->mutable_features(1)->set_kind("ids"); });
  expect("mlp", "features[1].rows: must be from 1",
         [](auto* c) { c->mutable_features(1)->clear_rows(); });
  expect("mlp", "features[0].rows: is for ids",
         [](auto* c) { c->mutable_features(0)->set_rows(1); });
  expect("mlp", "features[2].size: is for numbers and ids",
         [](auto* c) { c->mutable_features(2)->set_size(2); });
  expect("mlp", "features[1].size: must be from 1",
         [](auto* c) { c->mutable_features(1)->set_size(0); });
  expect("mlp", "features[1].mean: is for numbers",
         [](auto* c) { c->mutable_features(1)->set_mean(2); });
  expect("mlp", "features[0].stddev: must be above 0",
         [](auto* c) { c->mutable_features(0)->set_stddev(0); });
  expect("mlp", "label_column: must name", [](auto* c) { c->clear_label_column(); });
  expect("mlp", "hidden: names no layers", [](auto* c) { c->clear_hidden(); });
  expect("mlp", "hidden[1]: must be from 1", [](auto* c) { c->set_hidden(1, 0); });
  expect("mlp", "embedding_dim: must be from 1", [](auto* c) { c->set_embedding_dim(0); });
  expect("mlp", "cross_layers: is no key of model mlp", [](auto* c) { c->set_cross_layers(1); });
  expect("nfm", "classes: is no key of model nfm", [](auto* c) { c->set_classes(3); });
  expect("nfm", "hidden: names no layers", [](auto* c) { c->clear_hidden(); });
  expect("dcn_v2", "cross_layers: must be at least 1", [](auto* c) { c->set_cross_layers(0); });
  expect("logistic_regression", "embedding_dim: is no key",
         [](auto* c) { c->set_embedding_dim(1); });
  expect("factorization_machine", "hidden: is no key", [](auto* c) { c->add_hidden(1); });
}

TEST(FeatureModels, DataWithoutTheColumnsIsRefused) {
  const FeatureModelKind& kind = FeatureModelKinds()[0];
  MU_ASSERT_OK_AND_ASSIGN(
      auto model, ModelRegistry::WithBuiltins().Create(ConfigOf(kind, LibsvmCase().features)));
  EXPECT_THAT(CheckColumns(*model, CriteoDataset().proto(), DataPurpose::kEval),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no column \"features\", a list of ids with weights")));
  EXPECT_THAT(
      CheckColumns(*model, MakeDataset(Libsvm({"x"}, 7).Batch(4)).proto(), DataPurpose::kEval),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("ids below 7, the model has rows for 6")));
}

}  // namespace
}  // namespace mu
