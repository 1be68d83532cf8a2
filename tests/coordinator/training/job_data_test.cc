#include "coordinator/training/job_data.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::google::protobuf::Descriptor;
using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::google::protobuf::TextFormat;

// A job in whose source nothing has its default; one column of each kind.
pb::JobProto FullJob() {
  pb::JobProto job;
  EXPECT_TRUE(TextFormat::ParseFromString(
      R"pb(
        seed: 5
        data {
          train {
            format: "csv"
            files: "a.csv"
            shuffle { records: 1000 }
            records { modulo: 10 keep: 9 }
            on_bad_record: "skip"
            header: false
            delimiter: ";"
            quote: "'"
            missing: "?"
            trim: true
            visitation: "none"
            columns {
              name: "n"
              field: "N"
              index: 3
              kind: "number"

              missing_value: 2
              required: true
            }
            columns { name: "h" index: 1 kind: "hash" buckets: 50 separator: "|" }
            columns { name: "l" index: 0 kind: "label" positive: "yes" }
            columns { name: "s" index: 4 kind: "number" mean: 3 stddev: 2 separator: " " shape: 2 }
            columns { name: "c" index: 5 kind: "class" classes: "a" missing_id: 7 }
            columns { name: "v" index: 6 kind: "vocabulary" vocabulary: "v.txt" oov_buckets: 2 }
            columns { name: "b" index: 7 kind: "bucket" boundaries: 18 }
            columns { name: "x" kind: "cross" of: "c" of: "b" seed: 4 }
            columns { name: "w" index: 8 kind: "id" separator: " " weight_separator: ":" }
            columns {
              name: "q"
              index: 9
              kind: "id"
              separator: " "
              length: 20
              padding: 3
              truncate: "begin"
            }
            skip_lines: 1
          }
        }
        training { epochs: 3 batch_size: 64 eval_batch_size: 128 micro_batches: 2 }
      )pb",
      &job));
  return job;
}

// The same for the keys of libsvm.
pb::JobProto FullLibsvmJob() {
  pb::JobProto job;
  EXPECT_TRUE(TextFormat::ParseFromString(
      R"pb(
        data { train { format: "libsvm" files: "a" features: 124 positive: "+1" } }
        training { epochs: 3 batch_size: 64 }
      )pb",
      &job));
  return job;
}

pb::JobProto JobOf(const std::string& source);
pb::JobProto FullLibffmJob() {
  return JobOf(R"(format: "libffm" files: "a" features: 124 fields: 5 positive: "1")");
}

// And for those of the formats that are not text.
pb::JobProto JobOf(const std::string& source) {
  pb::JobProto job;
  EXPECT_TRUE(TextFormat::ParseFromString(
      absl::StrCat("data { train { ", source, " } } training { epochs: 3 batch_size: 64 }"), &job));
  return job;
}
pb::JobProto FullJsonlJob() {
  return JobOf(
      R"(format: "jsonl" files: "a" missing: "?"
         columns { name: "t" kind: "id" list: true weight_field: "w" })");
}
pb::JobProto FullIdxJob() {
  return JobOf(R"(format: "idx" files: "a" labels: "b" scale: 2 shape: 5)");
}
pb::JobProto FullNpyJob() {
  return JobOf(
      R"(format: "npy" columns { name: "x" kind: "number" files: "x.npy" shape: 3 scale: 2 }
         columns { name: "y" kind: "id" files: "y.npy" buckets: 7 })");
}

std::string DatasetText(const pb::JobProto& job, DataPurpose purpose) {
  const auto dataset = DatasetOf(job, purpose);
  return dataset.ok() ? dataset->DebugString()
                      : absl::StrCat("error: ", dataset.status().message());
}

// Calls visit(path) with one field after another cleared, those of submessages too.
void WithoutEach(Message* message, const std::string& path,
                 const std::function<void(const std::string&)>& visit) {
  const auto* reflection = message->GetReflection();
  const Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string name = absl::StrCat(path, ".", field->name());
    const bool there = field->is_repeated() ? reflection->FieldSize(*message, field) > 0
                                            : reflection->HasField(*message, field);
    if (!there) continue;
    std::unique_ptr<Message> kept(message->New());
    kept->CopyFrom(*message);
    reflection->ClearField(message, field);
    visit(name);
    message->CopyFrom(*kept);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) WithoutEach(reflection->MutableMessage(message, field), name, visit);
    for (int j = 0; field->is_repeated() && j < reflection->FieldSize(*message, field); ++j) {
      WithoutEach(reflection->MutableRepeatedMessage(message, field, j), name, visit);
    }
  }
}

// A key that is dropped on its way from the job file to the readers trains something else without
// a word.
TEST(DatasetOfTest, EveryKeyOfASourceCounts) {
  std::set<std::string> visited;
  for (pb::JobProto job :
       {FullJob(), FullLibsvmJob(), FullLibffmJob(), FullJsonlJob(), FullIdxJob(), FullNpyJob()}) {
    const std::string full = DatasetText(job, DataPurpose::kTrain);
    WithoutEach(job.mutable_data()->mutable_train(), "train", [&](const std::string& path) {
      visited.insert(path);
      EXPECT_NE(DatasetText(job, DataPurpose::kTrain), full) << path << " is ignored";
    });
  }
  // A key that is new must come into one of these jobs.
  for (const auto& [type, prefix] : std::map<const Descriptor*, std::string>{
           {pb::SourceProto::descriptor(), "train"},
           {pb::JobColumnProto::descriptor(), "train.columns"},
           {pb::JobRecordsProto::descriptor(), "train.records"},
           {pb::JobShuffleProto::descriptor(), "train.shuffle"}}) {
    for (int i = 0; i < type->field_count(); ++i) {
      EXPECT_TRUE(visited.contains(absl::StrCat(prefix, ".", type->field(i)->name())))
          << prefix << "." << type->field(i)->name();
    }
  }
}

TEST(DatasetOfTest, FilesOfArraysAreReadTogether) {
  const pb::DatasetProto idx = *DatasetOf(FullIdxJob(), DataPurpose::kTrain);
  ASSERT_EQ(idx.companions_size(), 1);
  EXPECT_EQ(idx.files(0), "a");
  EXPECT_EQ(idx.companions(0).files(0), "b");
  EXPECT_FLOAT_EQ(DatasetOf(JobOf("format: \"idx\" files: \"a\""), DataPurpose::kTrain)
                      ->arrays()
                      .columns(0)
                      .scale(),
                  1.0f / 255);
  const pb::DatasetProto npy = *DatasetOf(FullNpyJob(), DataPurpose::kTrain);
  EXPECT_EQ(npy.files(0), "x.npy");
  EXPECT_EQ(npy.companions(0).files(0), "y.npy");
  EXPECT_EQ(npy.arrays().columns(1).dtype(), pb::INT64);
}

TEST(DatasetOfTest, TheJobsKeysCount) {
  pb::JobProto job = FullJob();
  *job.mutable_data()->mutable_eval() = job.data().train();
  pb::DatasetProto train = *DatasetOf(job, DataPurpose::kTrain);
  EXPECT_EQ(train.seed(), 5u);
  EXPECT_EQ(train.batch_size(), 64u);
  EXPECT_EQ(train.epochs(), 0u) << "visitation: none has no end";
  job.mutable_data()->mutable_train()->clear_visitation();
  train = *DatasetOf(job, DataPurpose::kTrain);
  EXPECT_EQ(train.epochs(), 3u);
  // Evaluation goes through everything once, as it lies in the files.
  const pb::DatasetProto eval = *DatasetOf(job, DataPurpose::kEval);
  EXPECT_EQ(eval.batch_size(), 128u);
  EXPECT_EQ(eval.epochs(), 1u);
  EXPECT_EQ(eval.shuffle_records(), 0u);
  EXPECT_EQ(eval.visitation(), pb::VISITATION_EXACTLY_ONCE);
  EXPECT_EQ(eval.csv().DebugString(), train.csv().DebugString());
  EXPECT_EQ(DatasetOf(job, DataPurpose::kPredict)->batch_size(), 128u);
}

class TwoTables : public Model {
 public:
  absl::Status Create(VariableFactory&) override { return absl::OkStatus(); }
  ModelOutput Build(FunctionBuilder&, const BatchRef&) override { return {}; }
  Task task() const override { return Task::kRegression; }
  std::vector<pb::ColumnSchema> Columns() const override { return {}; }
  std::map<std::string, int64_t> IdBounds() const override {
    return {{"free", 10}, {"loose", 10}, {"tight", 10}, {"text", 10}};
  }
};

TEST(BoundIdsTest, IdsWithoutABoundOrWithALargerOneGetTheModels) {
  pb::DatasetProto dataset;
  const auto add = [&](const char* name, pb::CsvColumnProto::Kind kind, int64_t buckets) {
    pb::CsvColumnProto* column = dataset.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_kind(kind);
    column->set_buckets(buckets);
  };
  add("free", pb::CsvColumnProto::ID, 0);
  add("loose", pb::CsvColumnProto::ID, 11);
  add("tight", pb::CsvColumnProto::ID, 9);
  add("text", pb::CsvColumnProto::HASH, 100);
  add("other", pb::CsvColumnProto::ID, 0);
  BoundIds(TwoTables(), &dataset);
  const int64_t expected[] = {10, 10, 9, 100, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(dataset.csv().columns(i).buckets(), expected[i]) << dataset.csv().columns(i).name();
  }
}

// A model of the columns x and, as its label, y.
class Labelled : public TwoTables {
 public:
  std::vector<pb::ColumnSchema> Columns() const override {
    return {MakeColumn("x", pb::FLOAT32, {-1}), MakeColumn("y", pb::FLOAT32, {-1})};
  }
};

TEST(DropLabelsTest, DataToPredictNeedNoLabel) {
  pb::DatasetProto fields;
  for (const char* name : {"x", "y", "z"}) fields.mutable_jsonl()->add_columns()->set_name(name);
  pb::DatasetProto dropped = fields;
  DropLabels(Labelled(), {"x"}, &dropped);
  ASSERT_EQ(dropped.jsonl().columns_size(), 2);
  EXPECT_EQ(dropped.jsonl().columns(1).name(), "z");
  pb::DatasetProto wanted = fields;
  DropLabels(Labelled(), {"y"}, &wanted);
  EXPECT_EQ(wanted.jsonl().columns_size(), 3);
  fields.mutable_jsonl()->mutable_columns(2)->add_of("y");
  DropLabels(Labelled(), {}, &fields);
  EXPECT_EQ(fields.jsonl().columns_size(), 3) << "a cross takes it";

  pb::DatasetProto arrays;
  for (const char* name : {"x", "y"}) arrays.mutable_arrays()->add_columns()->set_name(name);
  arrays.add_files("x.npy");
  arrays.add_companions()->add_files("y.npy");
  DropLabels(Labelled(), {}, &arrays);
  EXPECT_EQ(arrays.arrays().columns_size(), 1);
  EXPECT_EQ(arrays.companions_size(), 0);
}

// A model of the label of criteo_tsv, libsvm and libffm.
class OfLabel : public TwoTables {
 public:
  std::vector<pb::ColumnSchema> Columns() const override {
    return {MakeColumn("label", pb::FLOAT32, {-1})};
  }
};

TEST(DropLabelsTest, TheLabelOfLinesMayBeMissing) {
  pb::DatasetProto criteo, libsvm, libffm;
  criteo.mutable_criteo_tsv()->set_hash_buckets(5);
  libsvm.mutable_libsvm()->set_features(5);
  libffm.mutable_libffm()->set_features(5);
  const pb::DatasetProto before[] = {criteo, libsvm, libffm};
  for (const pb::DatasetProto& dataset : before) {
    pb::DatasetProto copied = dataset;
    DropLabels(OfLabel(), {"label"}, &copied);
    EXPECT_EQ(copied.ShortDebugString(), dataset.ShortDebugString()) << "it is copied";
    DropLabels(Labelled(), {}, &copied);
    EXPECT_EQ(copied.ShortDebugString(), dataset.ShortDebugString()) << "the model's is another";
  }
  for (pb::DatasetProto* const dataset : {&criteo, &libsvm, &libffm})
    DropLabels(OfLabel(), {}, dataset);
  EXPECT_TRUE(criteo.criteo_tsv().unlabelled());
  EXPECT_TRUE(libsvm.libsvm().unlabelled());
  EXPECT_TRUE(libffm.libffm().unlabelled());
}

TEST(WithTextsTest, AddsWhatTheFieldsOfCopiedColumnsHold) {
  pb::DatasetProto dataset;
  const auto add = [&](const char* name, int32_t index, pb::CsvColumnProto::Kind kind) {
    pb::CsvColumnProto* const column = dataset.mutable_csv()->add_columns();
    column->set_name(name);
    column->set_index(index);
    column->set_kind(kind);
    return column;
  };
  add("named", -1, pb::CsvColumnProto::NUMBER)->set_mean(3);
  add("third", 2, pb::CsvColumnProto::HASH);
  add("other", -1, pb::CsvColumnProto::ID);
  add("of_field", 4, pb::CsvColumnProto::ID)->set_field("f");
  add("several", -1, pb::CsvColumnProto::ID)->set_separator("|");
  add("crossed", -1, pb::CsvColumnProto::CROSS)->add_of("named");
  const pb::DatasetProto before = dataset;
  MU_ASSERT_OK(WithTexts({"named", "third", "of_field", "several", "crossed", "absent"}, &dataset));
  ASSERT_EQ(dataset.csv().columns_size(), 9);
  const auto text = [&](int i) { return dataset.csv().columns(i).ShortDebugString(); };
  EXPECT_EQ(text(6), "name: \"named.text\" index: -1 kind: TEXT field: \"named\"");
  EXPECT_EQ(text(7), "name: \"third.text\" index: 2 kind: TEXT");
  EXPECT_EQ(text(8), "name: \"of_field.text\" index: -1 kind: TEXT field: \"f\"");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(text(i), before.csv().columns(i).ShortDebugString());
  pb::DatasetProto criteo;
  criteo.mutable_criteo_tsv()->set_hash_buckets(5);
  MU_EXPECT_OK(WithTexts({"label"}, &criteo));
  EXPECT_TRUE(criteo.has_criteo_tsv());
}

TEST(WithTextsTest, RefusesANameThatAnotherColumnHas) {
  pb::DatasetProto dataset;
  dataset.set_name("data.predict");
  for (const char* name : {"x", "x.text", "y"})
    dataset.mutable_jsonl()->add_columns()->set_name(name);
  EXPECT_THAT(WithTexts({"y", "x"}, &dataset),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("--columns: the text of column x takes the "
                                                     "name x.text, which data.predict has as a "
                                                     "column of its own; rename one")));
  MU_EXPECT_OK(WithTexts({"x.text"}, &dataset));
}

}  // namespace
}  // namespace mu
