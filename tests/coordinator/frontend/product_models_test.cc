// Models of many classes whose last products servers may compute (`product`): the same losses and
// the same training as of a model that reads its weights, which lie transposed.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/exec/executor.h"
#include "coordinator/frontend/feature_models.h"
#include "tests/coordinator/frontend/trace_helper.h"

namespace mu {
namespace {

constexpr uint32_t kClasses = 4;
constexpr int64_t kRecords = 3;

Dataset Data() {
  return MakeDataset(
      Csv({"x"}).Header().Number("x").Number("y").Id("id").Id("label").Batch(kRecords));
}

Batch Records() {
  Batch batch;
  batch.records = kRecords;
  batch.names = {"x", "y", "id", "label"};
  batch.columns = {Tensor::Of<float>({3}, {1, -2, 0.5f}), Tensor::Of<float>({3}, {0.3f, 1, -1}),
                   Tensor::Of<int64_t>({3}, {2, 0, 3}), Tensor::Of<int64_t>({3}, {3, 1, 0})};
  return batch;
}

pb::FeatureModelProto ConfigOf(const FeatureModelKind& kind, const std::string& product) {
  pb::FeatureModelProto config;
  for (const char* column : {"x", "y"}) config.add_features()->set_column(column);
  pb::FeatureProto* const id = config.add_features();
  id->set_column("id");
  id->set_kind("id");
  id->set_rows(4);
  config.set_label_column("label");
  config.set_classes(kClasses);
  if (kind.embeds()) config.set_embedding_dim(3);
  if (kind.deep) config.add_hidden(5);
  if (kind.cross) config.set_cross_layers(1);
  if (!product.empty()) config.set_product(product);
  return config;
}

struct Trained {
  Trained(const FeatureModelKind& kind, const std::string& product) : factory(0.1f) {
    factory.parameters.apply = true;
    model = *FeatureModel::FromConfig(kind, ConfigOf(kind, product));
    EXPECT_THAT(model->Create(factory), testing::IsOk());
  }

  Shape ShapeOf(uint32_t id) { return factory.parameters.variable(id).shape(); }

  // The losses of three steps of training.
  absl::StatusOr<std::vector<float>> Train() {
    const Dataset data = Data();
    MU_ASSIGN_OR_RETURN(const pb::FunctionProto function, Trace("train", [&](FunctionBuilder& f) {
                          const ModelOutput output = model->Build(f, f.NextBatch(data));
                          f.Minimize(output.loss);
                          f.Return("loss", output.loss);
                        }));
    MU_ASSIGN_OR_RETURN(const auto compiled, Compile(function, factory.parameters.routing()));
    Executor executor(compiled);
    const Batch batch = Records();
    StepInputs inputs;
    inputs.batch = &batch;
    std::vector<float> losses;
    std::vector<Tensor> returns;
    for (int step = 0; step < 3; ++step) {
      MU_RETURN_IF_ERROR(executor.RunStep(inputs, factory.parameters, &returns));
      losses.push_back(*returns[0].data<float>());
    }
    return losses;
  }

  testing::FakeFactory factory;
  std::unique_ptr<Model> model;
};

std::vector<float> Transposed(absl::Span<const float> values, const Shape& shape) {
  std::vector<float> result(values.size());
  const int64_t rows = shape[0], columns = shape[1];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) result[c * rows + r] = values[r * columns + c];
  }
  return result;
}

// All parameters of both, in the order of their creation, `product`'s as they lie in `read`. Sets
// them first to values of no pattern if `set`. Returns the names of `product`'s that lie
// transposed: only these are called otherwise.
std::vector<std::string> Compare(Trained& read, Trained& product, bool set) {
  std::vector<std::string> transposed;
  SplitMix random(11);
  for (const auto& [key, name] : read.factory.parameters.names) {
    const auto& [is_table, id] = key;
    const std::string& own = product.factory.parameters.names[key];
    const absl::Span<float> a = is_table ? absl::MakeSpan(read.factory.parameters.table(id).values)
                                         : read.factory.parameters.variable(id).flat<float>();
    const absl::Span<float> b = is_table
                                    ? absl::MakeSpan(product.factory.parameters.table(id).values)
                                    : product.factory.parameters.variable(id).flat<float>();
    EXPECT_EQ(a.size(), b.size()) << name;
    const bool turned = !is_table && read.ShapeOf(id) != product.ShapeOf(id);
    EXPECT_EQ(own != name, turned) << own;
    if (turned) transposed.push_back(own);
    if (set) {
      for (float& value : a) value = static_cast<float>(0.5 * random.Unit() - 0.2);
      const std::vector<float> values =
          turned ? Transposed(a, read.ShapeOf(id)) : std::vector<float>(a.begin(), a.end());
      std::copy(values.begin(), values.end(), b.begin());
      continue;
    }
    const std::vector<float> values =
        turned ? Transposed(b, product.ShapeOf(id)) : std::vector<float>(b.begin(), b.end());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], values[i], 1e-5) << name << " " << i;
  }
  return transposed;
}

TEST(ProductModels, TrainAsThoseThatReadTheirWeights) {
  const std::map<std::string, std::vector<std::string>> turned = {
      {"logistic_regression", {"wide/numbers_by_class"}},
      {"mlp", {"deep_1/kernel_by_output"}},
      {"wide_deep", {"wide/numbers_by_class", "deep_1/kernel_by_output"}},
      {"dcn_v2", {"deep_1/kernel_by_output"}}};
  size_t models = 0;
  for (const FeatureModelKind& kind : FeatureModelKinds()) {
    if (!FeatureModel::HasKey(kind, "product")) continue;
    ++models;
    for (const std::string place : {"servers", "worker", "auto"}) {
      SCOPED_TRACE(kind.name + (" " + place));
      Trained read(kind, ""), product(kind, place);
      EXPECT_THAT(Compare(read, product, /*set=*/true),
                  ::testing::UnorderedElementsAreArray(turned.at(kind.name)));
      MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> expected, read.Train());
      MU_ASSERT_OK_AND_ASSIGN(const std::vector<float> losses, product.Train());
      ASSERT_EQ(losses.size(), expected.size());
      for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i], expected[i], 1e-5);
      EXPECT_LT(expected[2], expected[0]);
      Compare(read, product, /*set=*/false);
      EXPECT_EQ(read.factory.parameters.multiplications, 0);
      // 3 records move more to servers than these weights have.
      EXPECT_EQ(product.factory.parameters.multiplications > 0, place == "servers");
    }
  }
  EXPECT_EQ(models, turned.size());
}

}  // namespace
}  // namespace mu
