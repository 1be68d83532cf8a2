// The graph that a model becomes: names, shapes, values inside and beside the file, errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "common/sharding/initializer.h"
#include "coordinator/export/onnx_export.h"
#include "coordinator/export/onnx_file.h"
#include "coordinator/export/onnx_ops.h"
#include "coordinator/export/prediction_graph.h"
#include "coordinator/frontend/layers.h"
#include "coordinator/frontend/paper_factory.h"
#include "tests/coordinator/export/checkpoint_maker.h"
#include "tests/coordinator/export/onnx_check.h"
#include "tests/testing/graph_maker.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::testing::AllOf;
using testing::CheckpointMaker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OnnxComplaint;
using ::testing::UnorderedElementsAre;

// A number, an id, a list; tables of 5 and 3 rows.
class SmallModel : public Model {
 public:
  absl::Status Create(VariableFactory& factory) override {
    MU_ASSIGN_OR_RETURN(weight_, factory.CreateVariable({.name = "w", .shape = {2, 1}}));
    MU_ASSIGN_OR_RETURN(users_,
                        factory.CreateEmbeddingTable({.name = "t/user", .rows = 5, .dim = 2}));
    MU_ASSIGN_OR_RETURN(tags_,
                        factory.CreateEmbeddingTable({.name = "t/tags", .rows = 3, .dim = 2}));
    return absl::OkStatus();
  }
  ModelOutput Build(FunctionBuilder&, const BatchRef& batch) override {
    const Sym user = EmbeddingLookup(users_, batch["user"]);
    const Sym tags = EmbeddingBag(tags_, batch["tags.values"], batch["tags.splits"]);
    Sym sum = MatMul(user + tags, Read(weight_)) + Reshape(batch["age"], {-1, 1});
    if (random) sum = sum + RandomUniform(sum);
    random_line = __LINE__ - 1;
    ModelOutput output;
    output.prediction = Sigmoid(Reshape(sum, {-1}));
    if (batch.Has("label")) output.label = batch["label"];
    return output;
  }
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override {
    return {MakeColumn("age", kFloat32, {kUnknownDim}), MakeColumn("user", kInt64, {kUnknownDim}),
            MakeColumn("tags.values", kInt64, {kUnknownDim}),
            MakeColumn("tags.splits", kInt32, {kUnknownDim}),
            MakeColumn("label", kFloat32, {kUnknownDim})};
  }

  bool random = false;
  int random_line = 0;

 private:
  Variable weight_;
  EmbeddingTable users_, tags_;
};

class OnnxGraphTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("onnx_graph"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
    MU_ASSERT_OK(model_.Create(factory_));
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }

  absl::StatusOr<CheckpointValues> Checkpoint(int64_t users = 5, const char* weight = "w") {
    CheckpointMaker maker(2);
    maker.AddVariable({.name = weight, .shape = {2, 1}}, Tensor::Of<float>({2, 1}, {3, 4}));
    maker.AddTable({.name = "t/user", .rows = users, .dim = 2, .partitions = 2},
                   {{0, {1, 2}}, {3, {5, 6}}});
    maker.AddTable(
        {.name = "t/tags", .rows = 3, .dim = 2, .initializer = Constant{2}, .partitions = 1}, {});
    MU_RETURN_IF_ERROR(maker.Write(Path("checkpoint")));
    return CheckpointValues::Open(Path("checkpoint"));
  }
  static pb::DatasetProto Records() {
    pb::CsvColumnProto tags;
    tags.set_name("tags");
    tags.set_index(2);
    tags.set_kind(pb::CsvColumnProto::ID);
    tags.set_separator("|");
    DatasetSpec records = Csv({"records.csv"});
    return records.Number("age", 0)
        .Id("user", 5, 1)
        .Column(tags)
        .Label("label", {"yes"}, 3)
        .Batch(4)
        .ToProto()
        .value();
  }
  absl::StatusOr<OnnxFiles> Write(const CheckpointValues& checkpoint,
                                  uint64_t inside = kDefaultBytesInside) {
    MU_ASSIGN_OR_RETURN(const pb::FunctionProto function, TracePrediction(model_, Records()));
    MU_ASSIGN_OR_RETURN(const OnnxGraph graph, OnnxOf(function, checkpoint));
    return WriteOnnx(graph, checkpoint, {{"muster_job", "small"}}, Path("model.onnx"), inside);
  }
  pb::onnx::ModelProto Parse(const std::string& path) {
    pb::onnx::ModelProto model;
    EXPECT_TRUE(model.ParseFromString(ReadFile(path).value_or("")));
    return model;
  }
  static std::vector<float> Floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // "int64[batch]".
  static std::string Describe(const pb::onnx::ValueInfoProto& value) {
    std::string text = pb::onnx::TensorProto::DataType_Name(value.type().tensor_type().elem_type());
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
      absl::StrAppend(&text, " ",
                      dim.has_dim_param() ? dim.dim_param() : absl::StrCat(dim.dim_value()));
    }
    return absl::StrCat(value.name(), ": ", text);
  }
  static const pb::onnx::TensorProto* FindInitializer(const pb::onnx::ModelProto& model,
                                                      const std::string& name) {
    for (const auto& tensor : model.graph().initializer()) {
      if (tensor.name() == name) return &tensor;
    }
    return nullptr;
  }

  PaperFactory factory_;
  SmallModel model_;
  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(OnnxGraphTest, NamesShapesAndValues) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles files, Write(checkpoint));
  EXPECT_EQ(files.model, Path("model.onnx"));
  EXPECT_EQ(files.data, "");
  EXPECT_EQ(files.bytes_inside, 8u + 40 + 24);
  const pb::onnx::ModelProto model = Parse(files.model);
  EXPECT_EQ(model.ir_version(), kOnnxIrVersion);
  ASSERT_EQ(model.opset_import_size(), 1);
  EXPECT_EQ(model.opset_import(0).version(), kOnnxOpset);
  ASSERT_EQ(model.metadata_props_size(), 1);
  EXPECT_EQ(model.metadata_props(0).value(), "small");

  std::vector<std::string> inputs, outputs;
  for (const auto& input : model.graph().input()) inputs.push_back(Describe(input));
  for (const auto& output : model.graph().output()) outputs.push_back(Describe(output));
  EXPECT_THAT(inputs, UnorderedElementsAre("age: FLOAT batch", "user: INT64 batch",
                                           "tags.values: INT64 tags.values",
                                           "tags.splits: INT32 tags.splits"));
  EXPECT_THAT(outputs, ElementsAre("prediction: FLOAT batch"));

  const auto* weight = FindInitializer(model, "w");
  ASSERT_NE(weight, nullptr);
  EXPECT_THAT(weight->dims(), ElementsAre(2, 1));
  EXPECT_THAT(Floats(weight->raw_data()), ElementsAre(3, 4));
  const auto* user = FindInitializer(model, "t/user");
  ASSERT_NE(user, nullptr);
  EXPECT_THAT(Floats(user->raw_data()), ElementsAre(1, 2, 0, 0, 0, 0, 5, 6, 0, 0));
  const auto* tags = FindInitializer(model, "t/tags");
  ASSERT_NE(tags, nullptr);
  EXPECT_THAT(Floats(tags->raw_data()), ElementsAre(2, 2, 2, 2, 2, 2));
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Sigmoid") {
      EXPECT_THAT(node.doc_string(),
                  AllOf(HasSubstr("sigmoid at "), HasSubstr("onnx_graph_test.cc:")));
    }
  }
}

// Values are used after they are made, and each name is made once.
TEST_F(OnnxGraphTest, NodesAreInOrderAndNamesAreUnique) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles files, Write(checkpoint));
  const pb::onnx::ModelProto model = Parse(files.model);
  std::set<std::string> made, nodes;
  for (const auto& input : model.graph().input()) EXPECT_TRUE(made.insert(input.name()).second);
  for (const auto& tensor : model.graph().initializer())
    EXPECT_TRUE(made.insert(tensor.name()).second) << tensor.name();
  for (const auto& node : model.graph().node()) {
    EXPECT_TRUE(nodes.insert(node.name()).second) << node.name();
    for (const std::string& input : node.input()) EXPECT_TRUE(made.contains(input)) << input;
    for (const std::string& output : node.output()) EXPECT_TRUE(made.insert(output).second);
  }
  EXPECT_TRUE(made.contains("prediction"));
}

// Also where the variable comes first.
TEST_F(OnnxGraphTest, AColumnKeepsItsNameBesideAVariableOfThatName) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  testing::GraphMaker maker;
  const auto read = maker.Read("w", 1, kFloat32, {2, 1});
  const auto column = maker.Column("w", kFloat32, {kUnknownDim, 2});
  maker.Return("y", maker.Op("matmul", {column, read}));
  MU_ASSERT_OK_AND_ASSIGN(const OnnxGraph graph, OnnxOf(maker.function(), checkpoint));
  MU_ASSERT_OK(WriteOnnx(graph, checkpoint, {}, Path("model.onnx")).status());
  const pb::onnx::ModelProto model = Parse(Path("model.onnx"));
  ASSERT_EQ(model.graph().input_size(), 1);
  EXPECT_EQ(model.graph().input(0).name(), "w");
  ASSERT_EQ(model.graph().initializer_size(), 1);
  EXPECT_EQ(model.graph().initializer(0).name(), "w_1");
  EXPECT_THAT(Floats(model.graph().initializer(0).raw_data()), ElementsAre(3, 4));
  const auto& product = model.graph().node(0);
  EXPECT_EQ(product.op_type(), "MatMul");
  EXPECT_THAT(product.input(), ElementsAre("w", "w_1"));
}

// An earlier model would take the new data for its own.
TEST_F(OnnxGraphTest, AFailedExportLeavesNoModelWithTheDataOfAnother) {
  const std::string path = Path("model.onnx"), data = OnnxDataPath(path);
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  MU_ASSERT_OK(WriteFileAtomic(path, "old model"));
  MU_ASSERT_OK(WriteFileAtomic(data, "old data"));
  // A folder where the new model is to be written.
  const std::string part = absl::StrCat(path, ".part-", ::getpid());
  MU_ASSERT_OK(MakeDirectories(part));
  EXPECT_FALSE(Write(checkpoint, /*inside=*/0).ok());
  EXPECT_EQ(ReadFile(path).value_or(""), "old model");
  EXPECT_EQ(ReadFile(data).value_or(""), "old data");
  EXPECT_FALSE(FileExists(absl::StrCat(data, ".part-", ::getpid())));
  // And where its data is to lie.
  ASSERT_EQ(::rmdir(part.c_str()), 0);
  MU_ASSERT_OK(RemoveFile(data));
  MU_ASSERT_OK(MakeDirectories(data));
  EXPECT_FALSE(Write(checkpoint, /*inside=*/0).ok());
  EXPECT_FALSE(FileExists(path));
  ASSERT_EQ(::rmdir(data.c_str()), 0);
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles files, Write(checkpoint, /*inside=*/0));
  EXPECT_EQ(files.data, data);
  EXPECT_GE(ReadFile(data).value_or("").size(), files.bytes_beside);
  const pb::onnx::ModelProto model = Parse(path);
  EXPECT_NE(FindInitializer(model, "t/user"), nullptr);
}

TEST_F(OnnxGraphTest, OnnxsOwnCheckerAgrees) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles files, Write(checkpoint));
  bool checked = false;
  EXPECT_EQ(OnnxComplaint(ReadFile(files.model).value_or(""), &checked), "");
  // It does complain.
  pb::onnx::ModelProto wrong = Parse(files.model);
  wrong.mutable_graph()->mutable_node(0)->set_op_type("Nonsense");
  const std::string complaint = OnnxComplaint(wrong.SerializeAsString(), &checked);
  if (!checked) GTEST_SKIP() << "libonnx-dev is not installed";
  EXPECT_THAT(complaint, HasSubstr("Nonsense"));
}

TEST_F(OnnxGraphTest, TheLargestTablesGoBesideTheFile) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles files, Write(checkpoint, 8 + 23));
  EXPECT_EQ(files.bytes_inside, 8u);
  EXPECT_EQ(files.bytes_beside, 64u);
  EXPECT_EQ(files.data, Path("model.onnx.data"));
  const pb::onnx::ModelProto model = Parse(files.model);
  EXPECT_TRUE(FindInitializer(model, "w")->has_raw_data());
  MU_ASSERT_OK_AND_ASSIGN(const std::string data, ReadFile(files.data));
  std::map<std::string, std::vector<float>> beside;
  for (const char* name : {"t/tags", "t/user"}) {
    const auto* tensor = FindInitializer(model, name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->data_location(), pb::onnx::TensorProto::EXTERNAL);
    EXPECT_FALSE(tensor->has_raw_data());
    std::map<std::string, std::string> where;
    for (const auto& entry : tensor->external_data()) where[entry.key()] = entry.value();
    EXPECT_EQ(where["location"], "model.onnx.data");
    EXPECT_EQ(std::stoul(where["offset"]) % 4096, 0u);
    beside[name] = Floats(data.substr(std::stoul(where["offset"]), std::stoul(where["length"])));
  }
  EXPECT_THAT(beside["t/tags"], ElementsAre(2, 2, 2, 2, 2, 2));
  EXPECT_THAT(beside["t/user"], ElementsAre(1, 2, 0, 0, 0, 0, 5, 6, 0, 0));
  // As much as fits is inside.
  MU_ASSERT_OK_AND_ASSIGN(const OnnxFiles more, Write(checkpoint, 8 + 24));
  EXPECT_EQ(more.bytes_inside, 32u);
}

TEST_F(OnnxGraphTest, AnOpWithoutAFormIsNamedWithItsLine) {
  model_.random = true;
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues checkpoint, Checkpoint());
  const absl::Status status = Write(checkpoint).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("op \"random_uniform\""));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr(absl::StrCat("onnx_graph_test.cc:", model_.random_line)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("depend on the step"));
}

TEST_F(OnnxGraphTest, ACheckpointOfAnotherModel) {
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues other, Checkpoint(6));
  EXPECT_THAT(
      std::string(Write(other).status().message()),
      HasSubstr("'t/user' is float32[5, 2] in the model and float32[6, 2] in the checkpoint"));
  MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues renamed, Checkpoint(5, "w0"));
  const absl::Status missing = Write(renamed).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("no 'w'; did you mean \"w0\"?"));
}

}  // namespace
}  // namespace mu
