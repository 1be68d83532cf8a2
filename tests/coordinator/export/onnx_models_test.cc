// Trained models in ONNX Runtime: the predictions of a cluster for the same batches, to 1e-5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/env/file.h"
#include "coordinator/export/onnx_export.h"
#include "coordinator/export/onnx_file.h"
#include "coordinator/export/prediction_graph.h"
#include "coordinator/frontend/model_registry.h"
#include "coordinator/frontend/paper_factory.h"
#include "coordinator/launch/launch.h"
#include "google/protobuf/text_format.h"
#include "tests/coordinator/export/onnx_runtime.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using testing::Dense;
using testing::OnnxAnswer;
using testing::OnnxCase;

constexpr int kRecords = 200;
constexpr uint32_t kBatch = 37;  // the last one is shorter

constexpr char kFeatures[] =
    "features { column: 'age' mean: 40 stddev: 12.5 } features { column: 'job' kind: 'id' rows: 50 "
    "} features { column: 'tags' kind: 'list' rows: 30 } label_column: 'label' ";

struct Trial {
  std::string name;
  std::string model;  // ModelProto as text
  pb::DatasetProto data;
};

std::string OutputOf(const std::string& task) {
  return task.empty() ? "prediction" : task + ".prediction";
}

class OnnxModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = testing::OnnxRuntimeMissing(); !missing.empty())
      GTEST_SKIP() << missing;
    MU_ASSERT_OK_AND_ASSIGN(auto directory, TempDirectory::Create("onnx_models"));
    directory_ = std::make_unique<TempDirectory>(std::move(directory));
    WriteData();
  }
  std::string Path(const std::string& name) const { return JoinPath(directory_->path(), name); }

  void WriteData() {
    std::string csv = "age,job,tags,label\n", ratings = "user,item,rating\n", clicks, sparse;
    SplitMix random(1);
    for (int i = 0; i < kRecords; ++i) {
      const uint64_t job = random.Below(50), label = (job + random.Below(20)) % 2;
      std::vector<std::string> tags;
      for (uint64_t t = random.Below(4); t > 0; --t) tags.push_back(absl::StrCat(random.Below(30)));
      absl::StrAppend(&csv, 20 + random.Below(50), ",", job, ",", absl::StrJoin(tags, "|"), ",",
                      label, "\n");
      absl::StrAppend(&ratings, random.Below(20), ",", random.Below(30), ",",
                      1 + random.Below(9) * 0.5, "\n");
      absl::StrAppend(&clicks, label);
      for (int d = 0; d < 13; ++d)
        absl::StrAppend(&clicks, "\t", d % 5 == 4 ? "" : absl::StrCat(random.Below(100)));
      for (int f = 0; f < 26; ++f)
        absl::StrAppendFormat(&clicks, "\t%08x", random.Below(40) * 7919);
      absl::StrAppend(&clicks, "\n");
      absl::StrAppend(&sparse, label == 0 ? "-1" : "+1");
      for (uint64_t id = 1 + random.Below(5); id < 40; id += 1 + random.Below(9))
        absl::StrAppendFormat(&sparse, " %d:%.3f", id, random.Unit());
      absl::StrAppend(&sparse, "\n");
    }
    WriteChoices();
    WriteImages();
    MU_ASSERT_OK(WriteFileAtomic(Path("data.csv"), csv));
    MU_ASSERT_OK(WriteFileAtomic(Path("ratings.csv"), ratings));
    MU_ASSERT_OK(WriteFileAtomic(Path("clicks.tsv"), clicks));
    MU_ASSERT_OK(WriteFileAtomic(Path("sparse.txt"), sparse));
  }

  // Histories of up to seven items, of which the reader keeps five.
  void WriteChoices() {
    std::string choices = "user,item,frequency,history,label,second\n";
    SplitMix random(2);
    for (int i = 0; i < kRecords; ++i) {
      std::vector<std::string> history;
      for (uint64_t t = random.Below(8); t > 0; --t)
        history.push_back(absl::StrCat(1 + random.Below(29)));
      absl::StrAppend(&choices, random.Below(20), ",", 1 + random.Below(29), ",",
                      0.01 * static_cast<double>(1 + random.Below(9)), ",",
                      absl::StrJoin(history, "|"), ",", random.Below(2), ",", random.Below(2),
                      "\n");
    }
    MU_ASSERT_OK(WriteFileAtomic(Path("choices.csv"), choices));
  }
  // The candidate's column is called `item`.
  pb::DatasetProto Choices(const std::string& item = "item") {
    pb::CsvColumnProto candidate;
    candidate.set_name(item);
    candidate.set_field("item");
    candidate.set_kind(pb::CsvColumnProto::ID);
    pb::CsvColumnProto history;
    history.set_name("history");
    history.set_field("history");
    history.set_kind(pb::CsvColumnProto::ID);
    history.set_separator("|");
    history.set_length(5);
    return Csv({Path("choices.csv")})
        .Header()
        .Id("user")
        .Column(candidate)
        .Number("frequency")
        .Column(history)
        .Label("label", {"1"})
        .Label("second", {"1"})
        .Name("choices")
        .Batch(kBatch)
        .ToProto()
        .value();
  }

  // 8 by 6 grey images of three classes, as MNIST's files are.
  void WriteImages() {
    const auto size = [](uint32_t value) {
      return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                         static_cast<char>(value >> 8), static_cast<char>(value)};
    };
    std::string images = size(0x803) + size(kRecords) + size(8) + size(6);
    std::string labels = size(0x801) + size(kRecords);
    SplitMix random(3);
    for (int i = 0; i < kRecords; ++i) {
      labels += static_cast<char>(random.Below(3));
      for (int pixel = 0; pixel < 48; ++pixel) images += static_cast<char>(random.Below(256));
    }
    MU_ASSERT_OK(WriteFileAtomic(Path("images"), images));
    MU_ASSERT_OK(WriteFileAtomic(Path("labels"), labels));
  }
  pb::DatasetProto Images() {
    return Idx({Path("images")}, {Path("labels")}, {.shape = {8, 6}})
        .Name("images")
        .Batch(kBatch)
        .ToProto()
        .value();
  }

  pb::DatasetProto Records() {
    pb::CsvColumnProto tags;
    tags.set_name("tags");
    tags.set_field("tags");
    tags.set_kind(pb::CsvColumnProto::ID);
    tags.set_separator("|");
    return Csv({Path("data.csv")})
        .Header()
        .Number("age")
        .Id("job")
        .Column(tags)
        .Label("label", {"1"})
        .Name("records")
        .Batch(kBatch)
        .ToProto()
        .value();
  }

  // Trains a little, so that values are no longer the initial ones; predicts; exports. The batches
  // and the predictions are appended.
  void Prepare(const Trial& trial, std::vector<OnnxCase>* cases,
               std::vector<OnnxAnswer>* expected) {
    pb::ModelProto config;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(trial.model, &config));
    const ModelRegistry registry = ModelRegistry::WithBuiltins();
    MU_ASSERT_OK_AND_ASSIGN(const auto model, registry.Create(config));
    MU_ASSERT_OK_AND_ASSIGN(
        const auto c,
        InProcess({.ps = 2, .seed = 7, .default_optimizer = Adagrad{.learning_rate = 0.1f}}));
    MU_ASSERT_OK(model->Create(*c));
    MU_ASSERT_OK_AND_ASSIGN(const Dataset data, c->CreateDataset(trial.data));
    MU_ASSERT_OK_AND_ASSIGN(const Function train,
                            c->DefineFunction("train", [&](FunctionBuilder& f) {
                              f.Train();
                              f.Minimize(model->Build(f, f.NextBatch(data)).loss);
                            }));
    std::vector<std::string> columns;
    for (const pb::ColumnSchema& column : model->ColumnsFor(DataPurpose::kPredict))
      columns.push_back(column.name());
    MU_ASSERT_OK_AND_ASSIGN(const Function predict,
                            c->DefineFunction("predict", [&](FunctionBuilder& f) {
                              const BatchRef batch = f.NextBatch(data);
                              for (const TaskOutput& task : TasksOf(model->Build(f, batch)))
                                f.Return(OutputOf(task.name), task.prediction);
                              for (const std::string& column : columns)
                                f.Return(column, batch[column]);
                            }));
    c->Schedule(train, {.steps = 12});
    MU_ASSERT_OK(c->Join());
    const std::string checkpoint = Path(trial.name);
    MU_ASSERT_OK(c->Save(checkpoint).status());
    MU_ASSERT_OK(c->StartEpoch(data, 0));
    const RemoteValue predicted = c->Schedule(predict, {.steps = kRecords / kBatch + 1});
    MU_ASSERT_OK(c->Join());
    MU_ASSERT_OK_AND_ASSIGN(const FunctionResult result, predicted.Fetch());
    EXPECT_EQ(result.samples(), static_cast<uint64_t>(kRecords));

    PaperFactory factory;
    MU_ASSERT_OK_AND_ASSIGN(const auto again, registry.Create(config));
    MU_ASSERT_OK(again->Create(factory));
    MU_ASSERT_OK_AND_ASSIGN(const pb::FunctionProto function, TracePrediction(*again, trial.data));
    MU_ASSERT_OK_AND_ASSIGN(const CheckpointValues values, CheckpointValues::Open(checkpoint));
    MU_ASSERT_OK_AND_ASSIGN(const OnnxGraph graph, OnnxOf(function, values));
    const std::string path = Path(trial.name + ".onnx");
    MU_ASSERT_OK(WriteOnnx(graph, values, {}, path).status());
    for (size_t step = 0; step < result.steps(); ++step) {
      OnnxCase each{path, {}};
      for (const std::string& column : columns) {
        MU_ASSERT_OK_AND_ASSIGN(const Tensor value, result.Get(step, column));
        each.inputs[column] = testing::ToDense(value);
      }
      OnnxAnswer answer;
      for (const pb::ReturnProto& output : function.returns()) {
        MU_ASSERT_OK_AND_ASSIGN(const Tensor prediction, result.Get(step, output.name()));
        answer.outputs[output.name()] = testing::ToDense(prediction);
      }
      // What the prediction does not need, such as the length of a sequence, is no input.
      std::set<std::string> inputs;
      for (const auto& input : graph.proto().input()) inputs.insert(input.name());
      std::erase_if(each.inputs, [&](const auto& input) { return !inputs.contains(input.first); });
      cases->push_back(std::move(each));
      expected->push_back(std::move(answer));
    }
  }

  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(OnnxModels, PredictAsTheClusterDoes) {
  std::vector<Trial> trials = {
      {"matrix_factorization",
       "matrix_factorization { dim: 4 users: 20 items: 30 user_column: 'user' item_column: 'item' "
       "rating_column: 'rating' global_mean: 3 }",
       Csv({Path("ratings.csv")})
           .Header()
           .Id("user")
           .Id("item")
           .Number("rating")
           .Name("ratings")
           .Batch(kBatch)
           .ToProto()
           .value()},
      {"dlrm", "dlrm { embedding_dim: 4 hash_buckets: 50 bottom_mlp: [8, 4] top_mlp: [8, 1] }",
       CriteoTsv({Path("clicks.tsv")}, 50).Name("clicks").Batch(kBatch).ToProto().value()},
      {"sparse",
       "logistic_regression { features { column: 'features' kind: 'weighted_list' rows: 41 } "
       "label_column: 'label' }",
       Libsvm({Path("sparse.txt")}, 41, {"+1"}).Name("sparse").Batch(kBatch).ToProto().value()}};
  const std::pair<const char*, const char*> kinds[] = {
      {"logistic_regression", ""},
      {"factorization_machine", "embedding_dim: 4"},
      {"mlp", "embedding_dim: 4 hidden: [8, 4]"},
      {"wide_deep", "embedding_dim: 4 hidden: [8]"},
      {"deepfm", "embedding_dim: 4 hidden: [8]"},
      {"nfm", "embedding_dim: 4 hidden: [8]"},
      {"dcn_v2", "embedding_dim: 4 hidden: [8] cross_layers: 2"}};
  for (const auto& [kind, keys] : kinds)
    trials.push_back({kind, absl::StrCat(kind, " { ", kFeatures, keys, " }"), Records()});
  const char image[] = "image_column: 'image' height: 8 width: 6 classes: 3 label_column: 'label' ";
  trials.push_back(
      {"cnn", absl::StrCat("cnn { ", image, "filters: [4] hidden: [8] dropout: 0.2 }"), Images()});
  trials.push_back({"resnet", absl::StrCat("resnet { ", image, "filters: [4, 8] }"), Images()});
  trials.push_back({"two_tower",
                    "two_tower { user { column: 'user' kind: 'id' rows: 20 } item { column: 'item' "
                    "kind: 'id' rows: 30 } embedding_dim: 4 hidden: [8, 4] frequency_column: "
                    "'frequency' label_column: 'label' }",
                    Choices()});
  // `items` is also what the models call their table.
  for (const char* const item : {"item", "items"}) {
    trials.push_back(
        {absl::StrCat("din_", item),
         absl::StrCat("din { features { column: 'user' kind: 'id' rows: 20 } history_column: "
                      "'history' length: 5 items: 30 embedding_dim: 4 attention_hidden: [4] "
                      "hidden: [8] label_column: 'label' item_column: '",
                      item, "' }"),
         Choices(item)});
    trials.push_back(
        {absl::StrCat("sasrec_", item),
         absl::StrCat("sasrec { sequence_column: 'history' length: 5 items: 30 embedding_dim: 4 "
                      "blocks: 2 heads: 2 label_column: 'label' item_column: '",
                      item, "' }"),
         Choices(item)});
  }
  trials.push_back({"mmoe",
                    "mmoe { features { column: 'user' kind: 'id' rows: 20 } features { column: "
                    "'frequency' } embedding_dim: 4 experts: 3 expert_hidden: [4] task_hidden: [4] "
                    "tasks { name: 'first' label_column: 'label' } tasks { name: 'other' "
                    "label_column: 'second' } }",
                    Choices()});
  std::vector<OnnxCase> cases;
  std::vector<OnnxAnswer> expected;
  for (const Trial& trial : trials) {
    SCOPED_TRACE(trial.name);
    Prepare(trial, &cases, &expected);
    if (HasFatalFailure()) return;
  }
  MU_ASSERT_OK_AND_ASSIGN(const std::vector<OnnxAnswer> answers,
                          testing::RunOnnx(cases, directory_->path()));
  for (size_t i = 0; i < answers.size(); ++i) {
    SCOPED_TRACE(cases[i].model);
    ASSERT_EQ(answers[i].error, "");
    for (const auto& [name, wanted] : expected[i].outputs) {
      SCOPED_TRACE(name);
      const Dense& prediction = answers[i].outputs.at(name);
      ASSERT_EQ(prediction.shape, wanted.shape);
      double least = 1e9, most = -1e9;
      for (size_t r = 0; r < prediction.values.size(); ++r) {
        EXPECT_NEAR(prediction.values[r], wanted.values[r],
                    1e-5 * (1 + std::abs(wanted.values[r])));
        least = std::min(least, prediction.values[r]);
        most = std::max(most, prediction.values[r]);
      }
      EXPECT_GT(most - least, 0.01) << "the predictions say nothing";
    }
  }
}

}  // namespace
}  // namespace mu
