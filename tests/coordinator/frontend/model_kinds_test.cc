// The models that check their own configuration: gradients of all parameters through all layers and
// tables, learning, what each reads for which purpose, and mistakes in keys.
#include "coordinator/frontend/model_kinds.h"

#include <google/protobuf/text_format.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/frontend/model_registry.h"
#include "tests/coordinator/autodiff/check_gradients.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

using ::google::protobuf::TextFormat;
using ::testing::HasSubstr;
using testing::StatusIs;

template <typename Proto>
Proto Parse(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

// A model, data that it trains on, and a batch of it.
struct Case {
  std::string name;
  std::string model;
  std::string data;
  Batch batch;
};

Tensor Numbers(const Shape& shape, uint64_t seed) {
  Tensor made(kFloat32, shape);
  SplitMix random(seed);
  for (float& value : made.flat<float>()) value = static_cast<float>(2 * random.Unit() - 1);
  return made;
}

Batch BatchOf(uint32_t records, std::vector<std::string> names, std::vector<Tensor> columns) {
  Batch batch;
  batch.records = records;
  batch.names = std::move(names);
  batch.columns = std::move(columns);
  return batch;
}

constexpr char kImages[] = R"pb(
  id: 1
  name: "images"
  arrays {
    container: IDX
    columns { name: "image" dtype: FLOAT32 shape: 6 shape: 6 }
    columns { name: "label" dtype: INT64 }
  }
)pb";

constexpr char kSequence[] =
    "columns { name: 'items' kind: ID separator: ' ' length: 4 truncate: TRUNCATE_BEGIN } ";

std::vector<Case> Cases() {
  const Tensor labels = Tensor::Of<int64_t>({3}, {0, 2, 1});
  const Tensor sequences = Tensor::Of<int64_t>({3, 4}, {1, 2, 3, 4, 5, 3, 0, 0, 2, 0, 0, 0});
  const Tensor lengths = Tensor::Of<int64_t>({3}, {4, 2, 1});
  return {
      {"cnn",
       R"pb(cnn {
              image_column: "image"
              height: 6
              width: 6
              classes: 3
              label_column: "label"
              filters: 4
              hidden: 8
            })pb",
       kImages, BatchOf(3, {"image", "label"}, {Numbers({3, 6, 6}, 1), labels})},
      {"resnet",
       R"pb(resnet {
              image_column: "image"
              height: 6
              width: 6
              classes: 3
              label_column: "label"
              filters: 2
              filters: 3
            })pb",
       kImages, BatchOf(3, {"image", "label"}, {Numbers({3, 6, 6}, 2), labels})},
      {"two_tower",
       R"pb(two_tower {
              user { column: "user" kind: "id" rows: 3 }
              user { column: "age" }
              item { column: "item" kind: "id" rows: 6 }
              embedding_dim: 3
              hidden: 4
              temperature: 0.5
              frequency_column: "frequency"
              label_column: "label"
            })pb",
       R"pb(id: 1
            name: "pairs"
            csv {
              columns { name: "user" kind: ID }
              columns { name: "age" }
              columns { name: "item" kind: ID }
              columns { name: "frequency" }
            })pb",
       BatchOf(3, {"user", "age", "item", "frequency"},
               {Tensor::Of<int64_t>({3}, {0, 2, 1}), Numbers({3}, 3),
                Tensor::Of<int64_t>({3}, {4, 1, 4}), Tensor::Of<float>({3}, {2, 5, 2})})},
      {"two_tower",
       R"pb(two_tower {
              user { column: "user" kind: "id" rows: 3 }
              item { column: "item" kind: "id" rows: 6 }
              embedding_dim: 3
              hidden: 4
              negatives: "sampled"
              sampled: 5
              label_column: "label"
            })pb",
       R"pb(id: 1
            name: "pairs"
            csv {
              columns { name: "user" kind: ID }
              columns { name: "item" kind: ID }
            })pb",
       BatchOf(3, {"user", "item"},
               {Tensor::Of<int64_t>({3}, {0, 2, 1}), Tensor::Of<int64_t>({3}, {4, 1, 4})})},
      {"din",
       R"pb(din {
              features { column: "age" }
              history_column: "items"
              length: 4
              item_column: "item"
              items: 6
              embedding_dim: 3
              attention_hidden: 4
              hidden: 5
              label_column: "label"
            })pb",
       absl::StrCat("id: 1 name: 'choices' csv { columns { name: 'age' } ", kSequence,
                    "columns { name: 'item' kind: ID } "
                    "columns { name: 'label' kind: LABEL positive: '1' } }"),
       BatchOf(3, {"age", "items", "items.length", "item", "label"},
               {Numbers({3}, 4), sequences, lengths, Tensor::Of<int64_t>({3}, {1, 5, 2}),
                Tensor::Of<float>({3}, {1, 0, 1})})},
      {"sasrec",
       R"pb(sasrec {
              sequence_column: "items"
              length: 4
              items: 6
              embedding_dim: 4
              blocks: 2
              heads: 2
              dropout: 0.25
              item_column: "item"
              label_column: "label"
            })pb",
       absl::StrCat("id: 1 name: 'sequences' csv { ", kSequence, "}"),
       BatchOf(3, {"items", "items.length"}, {sequences, lengths})},
      {"mmoe",
       R"pb(mmoe {
              features { column: "age" }
              features { column: "job" kind: "id" rows: 4 }
              embedding_dim: 3
              experts: 2
              expert_hidden: 4
              task_hidden: 3
              tasks { name: "rich" label_column: "rich" }
              tasks { name: "happy" label_column: "happy" weight: 0.5 }
            })pb",
       R"pb(id: 1
            name: "people"
            csv {
              columns { name: "age" }
              columns { name: "job" kind: ID }
              columns { name: "rich" kind: LABEL positive: "1" }
              columns { name: "happy" kind: LABEL positive: "1" }
            })pb",
       BatchOf(3, {"age", "job", "rich", "happy"},
               {Numbers({3}, 5), Tensor::Of<int64_t>({3}, {3, 0, 3}),
                Tensor::Of<float>({3}, {1, 0, 1}), Tensor::Of<float>({3}, {0, 1, 1})})},
  };
}

absl::StatusOr<pb::FunctionProto> TrainStep(Model& model, const Dataset& data,
                                            uint32_t micro_batches = 1) {
  return Trace("train", [&](FunctionBuilder& f) {
    f.Train();
    const ModelOutput output = model.Build(f, f.NextBatch(data));
    f.Minimize(output.loss, {.micro_batches = micro_batches});
    f.Return("loss", output.loss);
  });
}

// What a test needs of a case's model.
struct Made {
  explicit Made(const Case& c, float learning_rate = 1.0f)
      : factory(learning_rate), data(Parse<pb::DatasetProto>(c.data)) {
    auto created = ModelRegistry::WithBuiltins().Create(Parse<pb::ModelProto>(c.model));
    EXPECT_TRUE(created.ok()) << created.status();
    model = *std::move(created);
    MU_EXPECT_OK(CheckColumns(*model, data.proto(), DataPurpose::kTrain));
    MU_EXPECT_OK(model->Create(factory));
    auto traced = TrainStep(*model, data);
    EXPECT_TRUE(traced.ok()) << traced.status();
    step = *std::move(traced);
  }

  testing::FakeFactory factory;
  Dataset data;
  std::unique_ptr<Model> model;
  pb::FunctionProto step;
};

TEST(ModelKinds, EveryKindHasACase) {
  std::set<std::string> names;
  for (const Case& c : Cases()) names.insert(c.name);
  for (const ModelKind& kind : ModelKinds()) EXPECT_TRUE(names.contains(kind.name)) << kind.name;
}

// Values of no pattern. Biases keep hidden units on: where a ReLU switches, or another pixel
// becomes the largest, finite differences say nothing.
TEST(ModelKinds, GradientsOfAllParametersAreRight) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Made made(c);
    SplitMix random(11);
    std::map<std::string, absl::Span<float>> values;
    for (const auto& [id, name] : made.factory.parameters.names) {
      if (absl::StrContains(name, "/moving_")) continue;  // not trained
      values[name] = id.first ? absl::MakeSpan(made.factory.parameters.table(id.second).values)
                              : made.factory.parameters.variable(id.second).flat<float>();
      const bool keeps_on = absl::EndsWith(name, "/bias") || absl::EndsWith(name, "/beta");
      const bool scales = absl::EndsWith(name, "/gamma");
      for (float& value : values[name])
        value = static_cast<float>(0.3 * random.Unit() - 0.15 +
                                   (keeps_on ? 1.2
                                    : scales ? 0.8
                                             : 0));
    }
    ASSERT_FALSE(values.empty());
    GradientChecker checker(made.step, made.factory.parameters, &c.batch);
    for (const auto& [name, own] : values) {
      // Where another pixel becomes the largest of a window, or a ReLU switches, they are a little
      // off.
      checker.Check(name, own, c.data == kImages ? 1e-2 : 3e-3);
    }
  }
}

// Slices give the gradients of the batch, but where records of a batch meet, numbers are drawn for
// it, or the loss is a mean over something else than its records.
TEST(ModelKinds, EachTrainsInMicroBatches) {
  const std::set<std::string> differ = {"cnn", "resnet", "two_tower", "sasrec"};
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Made made(c);
    StepInputs inputs;
    inputs.batch = &c.batch;
    std::map<uint32_t, std::map<std::string, std::vector<float>>> gradients;
    std::map<uint32_t, float> loss;
    for (const uint32_t micro_batches : {1, 2}) {
      MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto step,
                              TrainStep(*made.model, made.data, micro_batches));
      MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(step, made.factory.parameters.routing()));
      Executor executor(compiled);
      std::vector<Tensor> returns;
      MU_ASSERT_OK(executor.RunStep(inputs, made.factory.parameters, &returns));
      gradients[micro_batches] = made.factory.parameters.gradients;
      loss[micro_batches] = *returns[0].data<float>();
    }
    ASSERT_EQ(gradients[1].size(), gradients[2].size());
    if (differ.contains(c.name)) continue;
    EXPECT_NEAR(loss[1], loss[2], 1e-5);
    for (const auto& [name, whole] : gradients[1]) {
      const std::vector<float>& sliced = gradients[2][name];
      ASSERT_EQ(whole.size(), sliced.size()) << name;
      for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], sliced[i], 1e-5) << name;
    }
  }
}

TEST(ModelKinds, EachLearnsABatch) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    Made made(c, /*learning_rate=*/0.1f);
    MU_ASSERT_OK_AND_ASSIGN(auto compiled, Compile(made.step, made.factory.parameters.routing()));
    Executor executor(compiled);
    made.factory.parameters.apply = true;
    StepInputs inputs;
    inputs.batch = &c.batch;
    std::vector<Tensor> returns;
    float first = 0;
    for (int step = 0; step < 600; ++step) {
      MU_ASSERT_OK(executor.RunStep(inputs, made.factory.parameters, &returns));
      if (step == 0) first = *returns[0].data<float>();
    }
    EXPECT_LT(*returns[0].data<float>(), 0.7f * first);
  }
}

// Predictions read the features, and what labels the user asks for: any of them, or none.
TEST(ModelKinds, MmoePredictsWithAnyOfItsLabels) {
  const std::vector<std::string> labels = {"rich", "happy", "busy"};
  for (unsigned chosen = 0; chosen < 8; ++chosen) {
    const auto has = [chosen](size_t i) { return ((chosen >> i) & 1) != 0; };
    std::string tasks, columns;
    for (size_t i = 0; i < labels.size(); ++i) {
      absl::StrAppend(&tasks, "tasks { name: '", labels[i], "' label_column: '", labels[i], "' } ");
      if (has(i))
        absl::StrAppend(&columns, "columns { name: '", labels[i], "' kind: LABEL positive: '1' } ");
    }
    SCOPED_TRACE(columns);
    testing::FakeFactory factory;
    MU_ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<Model> model,
        ModelRegistry::WithBuiltins().Create(Parse<pb::ModelProto>(absl::StrCat(
            "mmoe { features { column: 'age' } expert_hidden: 4 task_hidden: 3 ", tasks, "}"))));
    MU_ASSERT_OK(model->Create(factory));
    const Dataset data(Parse<pb::DatasetProto>(
        absl::StrCat("id: 1 name: 'people' csv { columns { name: 'age' } ", columns, "}")));
    const auto traced = Trace("predict", [&](FunctionBuilder& f) {
      const ModelOutput output = model->Build(f, f.NextBatch(data));
      ASSERT_EQ(output.tasks.size(), labels.size());
      for (size_t i = 0; i < labels.size(); ++i) {
        EXPECT_EQ(output.tasks[i].label.valid(), has(i));
        f.Return(labels[i], output.tasks[i].prediction);
      }
      EXPECT_EQ(output.loss.valid(), chosen == 7);  // with all of its parts
    });
    MU_EXPECT_OK(traced);
  }
}

}  // namespace
}  // namespace mu
