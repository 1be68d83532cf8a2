#include "absl/strings/str_cat.h"
#include "common/exec/executor.h"
#include "common/graph/print.h"
#include "common/graph/verifier.h"
#include "coordinator/frontend/dlrm.h"
#include "coordinator/frontend/matrix_factorization.h"
#include "coordinator/frontend/model_registry.h"
#include "tests/coordinator/autodiff/check_gradients.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

pb::ModelProto DlrmConfig() {
  pb::ModelProto config;
  pb::DlrmProto* dlrm = config.mutable_dlrm();
  dlrm->set_embedding_dim(4);
  dlrm->set_hash_buckets(7);
  for (const int width : {8, 4}) dlrm->add_bottom_mlp(static_cast<uint32_t>(width));
  for (const int width : {8, 1}) dlrm->add_top_mlp(static_cast<uint32_t>(width));
  return config;
}

pb::ModelProto FactorizationConfig() {
  pb::ModelProto config;
  pb::MatrixFactorizationProto* model = config.mutable_matrix_factorization();
  model->set_dim(4);
  model->set_users(20);
  model->set_items(30);
  model->set_user_column("user");
  model->set_item_column("item");
  model->set_rating_column("rating");
  model->set_global_mean(3.5f);
  return config;
}

Dataset Ratings(bool with_rating = true) {
  DatasetSpec spec = Csv({"r.csv"}).Header().Id("user").Id("item").Batch(4);
  if (with_rating) spec.Number("rating");
  return MakeDataset(spec);
}

// Traces a step that trains the model and returns loss and prediction.
absl::StatusOr<pb::FunctionProto> TrainStep(Model& model, const Dataset& data) {
  return Trace("train", [&](FunctionBuilder& f) {
    const ModelOutput output = model.Build(f, f.NextBatch(data));
    f.Minimize(output.loss);
    f.Return("loss", output.loss);
    f.Return("prediction", output.prediction);
  });
}

TEST(DlrmModel, TracesAndHasTheShapesOfThePaper) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(DlrmConfig()));
  MU_ASSERT_OK(model->Create(factory));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, Criteo()));
  const std::string text = FunctionToText(f);
  EXPECT_THAT(text, HasSubstr("float32[?, 27, 4]"));
  EXPECT_THAT(text, HasSubstr("float32[?, 351]"));
  EXPECT_THAT(text, HasSubstr("table=\"embedding_25\""));
  MU_ASSERT_OK_AND_ASSIGN(const FunctionSpecs specs, InferSpecs(f));
  EXPECT_EQ(specs[f.returns(1).value().node()][0].ToString(), "float32[?]");
  int pushes = 0;
  int applied = 0;
  for (const pb::NodeProto& node : f.nodes()) {
    pushes += node.op() == "push_rows";
    applied += node.op() == "apply_gradient";
  }
  EXPECT_EQ(pushes, 26);
  EXPECT_EQ(applied, 8);  // kernel and bias of four layers
}

TEST(DlrmModel, GradientsAreRight) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(DlrmConfig()));
  MU_ASSERT_OK(model->Create(factory));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, Criteo()));
  const Batch batch = CriteoBatch(6);
  GradientChecker checker(f, factory.parameters, &batch);
  for (const auto& [id, name] : factory.parameters.names) {
    if (name == "embedding_3") {
      checker.Check(name, absl::MakeSpan(factory.parameters.table(id.second).values));
    } else if (name == "bottom_mlp_1/kernel" || name == "top_mlp_1/kernel" ||
               name == "bottom_mlp_1/bias") {
      checker.Check(name, factory.parameters.variable(id.second).flat<float>());
    }
  }
}

TEST(DlrmModel, LearnsTheLabelsOfABatch) {
  testing::FakeFactory factory(/*learning_rate=*/0.3f);
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(DlrmConfig()));
  MU_ASSERT_OK(model->Create(factory));
  MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, Criteo()));
  MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(f, factory.parameters.routing()));
  Executor executor(compiled);
  factory.parameters.apply = true;
  const Batch batch = CriteoBatch(16);
  StepInputs inputs;
  inputs.batch = &batch;
  std::vector<Tensor> returns;
  float first = 0;
  for (int step = 0; step < 150; ++step) {
    MU_ASSERT_OK(executor.RunStep(inputs, factory.parameters, &returns));
    if (step == 0) first = *returns[0].data<float>();
  }
  EXPECT_GT(first, 0.3f);
  EXPECT_LT(*returns[0].data<float>(), 0.1f);
}

TEST(DlrmModel, ConfigErrorsNameTheKey) {
  const auto refusal = [](const std::function<void(pb::DlrmProto*)>& change) {
    pb::ModelProto config = DlrmConfig();
    change(config.mutable_dlrm());
    return ModelRegistry::WithBuiltins().Create(config).status();
  };
  EXPECT_THAT(refusal([](auto* c) { c->set_embedding_dim(0); }),
              StatusIs(kInvalid, HasSubstr("model.dlrm.embedding_dim")));
  EXPECT_THAT(refusal([](auto* c) { c->set_hash_buckets(0); }),
              StatusIs(kInvalid, HasSubstr("model.dlrm.hash_buckets")));
  EXPECT_THAT(refusal([](auto* c) { c->clear_bottom_mlp(); }),
              StatusIs(kInvalid, HasSubstr("model.dlrm.bottom_mlp")));
  EXPECT_THAT(refusal([](auto* c) { c->add_bottom_mlp(5); }),
              StatusIs(kInvalid, HasSubstr("ends in 5, but embedding_dim is 4")));
  EXPECT_THAT(refusal([](auto* c) { c->set_top_mlp(1, 2); }),
              StatusIs(kInvalid, HasSubstr("model.dlrm.top_mlp: ends in 2")));
  EXPECT_THAT(refusal([](auto* c) { c->set_top_mlp(0, 0); }),
              StatusIs(kInvalid, HasSubstr("model.dlrm.top_mlp")));
}

TEST(MatrixFactorizationModel, GradientsAreRight) {
  for (const float l2 : {0.0f, 0.1f}) {
    testing::FakeFactory factory;
    pb::ModelProto config = FactorizationConfig();
    config.mutable_matrix_factorization()->set_l2(l2);
    MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(config));
    MU_ASSERT_OK(model->Create(factory));
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto f, TrainStep(*model, Ratings()));
    Batch batch;
    batch.records = 5;
    batch.names = {"user", "item", "rating"};
    batch.columns = {Tensor::Of<int64_t>({5}, {1, 2, 1, 3, 19}),
                     Tensor::Of<int64_t>({5}, {0, 29, 29, 4, 0}),
                     Tensor::Of<float>({5}, {1, 2, 3, 4, 5})};
    GradientChecker checker(f, factory.parameters, &batch);
    for (const auto& [id, name] : factory.parameters.names) {
      checker.Check(name, absl::MakeSpan(factory.parameters.table(id.second).values));
    }
  }
}

TEST(MatrixFactorizationModel, PredictsWithoutRatings) {
  testing::FakeFactory factory;
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(FactorizationConfig()));
  MU_ASSERT_OK(model->Create(factory));
  MU_ASSERT_OK(Trace("predict", [&](FunctionBuilder& f) {
    const ModelOutput output = model->Build(f, f.NextBatch(Ratings(false)));
    EXPECT_FALSE(output.loss.valid());
    EXPECT_FALSE(output.label.valid());
    f.Return("prediction", output.prediction);
  }));
}

TEST(MatrixFactorizationModel, ConfigErrorsNameTheKey) {
  const auto refusal = [](const std::function<void(pb::MatrixFactorizationProto*)>& change) {
    pb::ModelProto config = FactorizationConfig();
    change(config.mutable_matrix_factorization());
    return ModelRegistry::WithBuiltins().Create(config).status();
  };
  const std::string key = "model.matrix_factorization.";
  EXPECT_THAT(refusal([](auto* c) { c->set_dim(0); }), StatusIs(kInvalid, HasSubstr(key + "dim")));
  EXPECT_THAT(refusal([](auto* c) { c->set_users(0); }),
              StatusIs(kInvalid, HasSubstr(key + "users")));
  EXPECT_THAT(refusal([](auto* c) { c->set_items(-1); }),
              StatusIs(kInvalid, HasSubstr(key + "items")));
  EXPECT_THAT(refusal([](auto* c) { c->clear_user_column(); }),
              StatusIs(kInvalid, HasSubstr(key + "user_column")));
  EXPECT_THAT(refusal([](auto* c) { c->clear_item_column(); }),
              StatusIs(kInvalid, HasSubstr(key + "item_column")));
  EXPECT_THAT(refusal([](auto* c) { c->clear_rating_column(); }),
              StatusIs(kInvalid, HasSubstr(key + "rating_column")));
  EXPECT_THAT(refusal([](auto* c) { c->set_l2(-1); }), StatusIs(kInvalid, HasSubstr(key + "l2")));
}

TEST(CheckColumns, ListsEveryProblem) {
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(FactorizationConfig()));
  MU_EXPECT_OK(CheckColumns(*model, Ratings().proto(), DataPurpose::kEval));
  MU_EXPECT_OK(CheckColumns(*model, Ratings(false).proto(), DataPurpose::kPredict));
  const Dataset wrong =
      MakeDataset(Csv({"r"}).Header().Number("user").Id("itme").Number("rating").Batch(1));
  const absl::Status status = CheckColumns(*model, wrong.proto(), DataPurpose::kEval);
  EXPECT_THAT(status,
              StatusIs(kInvalid, HasSubstr("\"user\" of csv is a number, the model reads an "
                                           "id")));
  EXPECT_THAT(status,
              StatusIs(kInvalid, HasSubstr("no column \"item\", an id; it has itme, rating, "
                                           "user; did you mean \"itme\"?")));
}

TEST(CheckColumns, MoreBucketsThanRowsAreRefused) {
  MU_ASSERT_OK_AND_ASSIGN(auto model, ModelRegistry::WithBuiltins().Create(FactorizationConfig()));
  const int64_t users = model->IdBounds().at("user");
  const auto hashed = [&](int64_t buckets) {
    return CheckColumns(
        *model,
        MakeDataset(Csv({"r"}).Header().Hash("user", buckets).Id("item").Number("rating").Batch(1))
            .proto(),
        DataPurpose::kEval);
  };
  MU_EXPECT_OK(hashed(users));
  EXPECT_THAT(hashed(users + 1), StatusIs(kInvalid, HasSubstr("column \"user\" is hashed into")));
}

// A model of a user's own.
class Slope : public Model {
 public:
  absl::Status Create(VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(layer_,
                        Dense::Create(factory, "slope", 13, 1, {.activation = Activation::kTanh}));
    return absl::OkStatus();
  }
  ModelOutput Build(FunctionBuilder&, const BatchRef& batch) override {
    ModelOutput output;
    output.task = task();
    output.prediction = Reshape(layer_(batch["dense"]), {-1});
    output.label = batch["label"];
    output.loss = MeanSquaredError(output.prediction, output.label);
    return output;
  }
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override { return {}; }

 private:
  Dense layer_;
};

TEST(ModelRegistry, UsersModelsBesideOurs) {
  ModelRegistry registry = ModelRegistry::WithBuiltins();
  std::string seen;
  const auto make = [&](const std::string& json) -> absl::StatusOr<std::unique_ptr<Model>> {
    seen = json;
    return std::unique_ptr<Model>(new Slope);
  };
  MU_ASSERT_OK(registry.RegisterJson("slope", make));
  EXPECT_THAT(registry.RegisterJson("slope", make),
              testing::HasCode(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(registry.RegisterJson("dlrm", make),
              testing::HasCode(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(registry.RegisterJson("", make), testing::HasCode(kInvalid));
  EXPECT_THAT(registry.Names(),
              ::testing::IsSupersetOf({"dlrm", "matrix_factorization", "deepfm", "slope"}));

  pb::ModelProto config;
  EXPECT_THAT(registry.Create(config), StatusIs(kInvalid, HasSubstr("names no model")));
  config.mutable_custom()->set_name("slop");
  EXPECT_THAT(registry.Create(config), StatusIs(kInvalid, HasSubstr("did you mean \"slope\"?")));
  config.mutable_custom()->set_name("slope");
  config.mutable_custom()->set_json("{\"a\": 1}");
  MU_ASSERT_OK_AND_ASSIGN(auto model, registry.Create(config));
  EXPECT_EQ(seen, "{\"a\": 1}");

  testing::FakeFactory factory;
  MU_ASSERT_OK(model->Create(factory));
  MU_ASSERT_OK(TrainStep(*model, Criteo()));
}

TEST(Layers, Refusals) {
  testing::FakeFactory factory;
  EXPECT_THAT(Dense::Create(factory, "d", 0, 3),
              StatusIs(kInvalid, HasSubstr("cannot lead from 0 values to 3")));
  EXPECT_THAT(Mlp::Create(factory, "m", 3, {}), StatusIs(kInvalid, HasSubstr("no layers")));
  EXPECT_THAT(Mlp::Create(factory, "n", 3, {4, 0}), testing::HasCode(kInvalid));
  MU_ASSERT_OK(Dense::Create(factory, "e", 3, 3));
  EXPECT_THAT(Dense::Create(factory, "e", 3, 3),
              testing::HasCode(absl::StatusCode::kAlreadyExists));
}

}  // namespace
}  // namespace mu
