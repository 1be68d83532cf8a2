#include "coordinator/frontend/column_misfits.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/testing/matchers.h"

namespace mu {
namespace {

using ::google::protobuf::TextFormat;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Reads one column x.
class OneColumn : public Model {
 public:
  explicit OneColumn(std::vector<pb::ColumnSchema> columns, int64_t rows = 0)
      : columns_(std::move(columns)), rows_(rows) {}
  absl::Status Create(VariableFactory&) override { return absl::OkStatus(); }
  ModelOutput Build(FunctionBuilder&, const BatchRef&) override { return {}; }
  Task task() const override { return Task::kBinaryClassification; }
  std::vector<pb::ColumnSchema> Columns() const override { return columns_; }
  std::map<std::string, int64_t> IdBounds() const override {
    return rows_ > 0 ? std::map<std::string, int64_t>{{"x", rows_}}
                     : std::map<std::string, int64_t>();
  }

 private:
  const std::vector<pb::ColumnSchema> columns_;
  const int64_t rows_;
};

std::vector<pb::ColumnSchema> One(DType dtype, const Shape& shape = {kUnknownDim}) {
  return {MakeColumn("x", dtype, shape)};
}
std::vector<pb::ColumnSchema> List(bool weighted) {
  std::vector<pb::ColumnSchema> columns = {MakeColumn("x.values", kInt64, {kUnknownDim}),
                                           MakeColumn("x.splits", kInt32, {kUnknownDim})};
  if (weighted) columns.push_back(MakeColumn("x.weights", kFloat32, {kUnknownDim}));
  return columns;
}
std::vector<pb::ColumnSchema> Sequence(int64_t length) {
  return {MakeColumn("x", kInt64, {kUnknownDim, length}),
          MakeColumn("x.length", kInt64, {kUnknownDim})};
}

pb::DatasetProto Data(const std::string& text) {
  pb::DatasetProto dataset;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &dataset)) << text;
  dataset.set_name("data.train");
  return dataset;
}
pb::DatasetProto CsvColumn(const std::string& column) {
  return Data("csv { columns { name: 'x' " + column + "} }");
}

// KEY: message; remedy
std::vector<std::string> Told(const Model& model, const pb::DatasetProto& dataset) {
  std::vector<std::string> told;
  for (const ColumnMisfit& misfit : ColumnMisfits(model, dataset, DataPurpose::kTrain)) {
    EXPECT_EQ(misfit.column, "x");
    told.push_back(absl::StrCat(misfit.data_key, ": ", misfit.message, "; ", misfit.remedy));
  }
  return told;
}

TEST(ColumnMisfitsTest, AColumnThatIsNotThere) {
  EXPECT_THAT(
      Told(OneColumn(List(true)),
           Data("csv { columns { name: 'y' } columns { name: 'xx' separator: ' ' kind: ID } "
                "}")),
      ElementsAre(HasSubstr(": data.train has no column \"x\", a list of ids with weights; "
                            "it has xx, y")));
}

struct Pair {
  const char* name;
  std::vector<pb::ColumnSchema> needs;
  const char* column;
  const char* misfit;  // null: none
};

class FormsTest : public ::testing::TestWithParam<Pair> {};

TEST_P(FormsTest, AreTold) {
  const OneColumn model(GetParam().needs);
  const std::vector<std::string> told = Told(model, CsvColumn(GetParam().column));
  if (GetParam().misfit == nullptr) {
    EXPECT_THAT(told, IsEmpty());
  } else {
    EXPECT_THAT(told, ElementsAre(HasSubstr(GetParam().misfit)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FormsTest,
    ::testing::Values(
        Pair{"number", One(kFloat32), "kind: NUMBER", nullptr},
        Pair{"label", One(kFloat32), "kind: LABEL", nullptr},
        Pair{"id", One(kInt64), "kind: VOCABULARY", nullptr},
        Pair{"weights_may_be_there", List(false), "kind: ID separator: ' ' weight_separator: ':'",
             nullptr},
        Pair{"sequence", Sequence(3), "kind: ID separator: ' ' length: 3", nullptr},
        Pair{"without_its_length", One(kInt64, {kUnknownDim, 3}),
             "kind: ID separator: ' ' length: 3", nullptr},
        Pair{"shape", One(kFloat32, {kUnknownDim, 2}), "kind: NUMBER separator: ' ' shape: 2",
             nullptr},
        Pair{"id_for_number", One(kFloat32), "kind: ID",
             ": column \"x\" of data.train is an id, the model reads a number; write kind: id and "
             "`rows` for the feature"},
        Pair{"number_for_id", One(kInt64), "kind: NUMBER",
             "is a number, the model reads an id; write for the column kind: id, hash"},
        Pair{"list_for_number", One(kFloat32), "kind: HASH separator: ' '",
             "is a list of ids, the model reads a number; write kind: list and `rows`"},
        Pair{"id_for_list", List(false), "kind: HASH",
             "is an id, the model reads a list of ids; write `separator` for the column"},
        Pair{"id_for_weighted_list", List(true), "kind: HASH",
             "write `separator` and `weight_separator` for the column"},
        Pair{"list_without_weights", List(true), "kind: HASH separator: ' '",
             "the model reads a list of ids with weights; write `weight_separator` for the column, "
             "or kind: list"},
        Pair{"sequence_for_list", List(false), "kind: ID separator: ' ' length: 3",
             "is a sequence of 3 ids, the model reads a list of ids; remove `length`"},
        Pair{"list_for_id", One(kInt64), "kind: ID separator: ' '",
             "is a list of ids, the model reads an id; write kind: list for the feature"},
        Pair{"weighted_list_for_id", One(kInt64), "kind: ID separator: ' ' weight_separator: ':'",
             "write kind: weighted_list for the feature"},
        Pair{"id_for_sequence", Sequence(3), "kind: ID",
             "the model reads a sequence of 3 ids; write `separator` and length: 3"},
        Pair{"list_for_sequence", Sequence(3), "kind: ID separator: ' '",
             "is a list of ids, the model reads a sequence of 3 ids; write length: 3"},
        Pair{"other_length", Sequence(3), "kind: ID separator: ' ' length: 4",
             "is a sequence of 4 ids, the model reads a sequence of 3 ids; write length: 3"},
        Pair{"other_shape", One(kFloat32, {kUnknownDim, 2}),
             "kind: NUMBER separator: ' ' shape: [2, 3]",
             "is numbers of shape [2, 3], the model reads numbers of shape [2]; write the same"}),
    [](const auto& info) { return info.param.name; });

TEST(ColumnMisfitsTest, OtherFormatsHaveLists) {
  EXPECT_THAT(Told(OneColumn(List(true)), Data("jsonl { columns { name: 'x' kind: ID } }")),
              ElementsAre(HasSubstr("write list: true and `weight_field` for the column")));
}

TEST(ColumnMisfitsTest, IdsForMissingValuesAndPaddingHaveRows) {
  const OneColumn one(One(kInt64), 10), sequence(Sequence(3), 10);
  for (const char* kind : {"kind: ID", "kind: CLASS classes: 'a'"}) {
    const auto told = [&](int id) {
      return Told(one, CsvColumn(absl::StrCat(kind, " missing_id: ", id)));
    };
    EXPECT_THAT(told(9), IsEmpty()) << kind;
    EXPECT_THAT(told(10), ElementsAre("missing_id: column \"x\" has `missing_id` 10, the model has "
                                      "rows for 10; write an id below 10, or more rows in the "
                                      "model"))
        << kind;
  }
  EXPECT_THAT(Told(one, CsvColumn("kind: ID missing_id: 10 required: true")), IsEmpty());
  const char* const padded = "kind: ID separator: ' ' length: 3 padding: ";
  EXPECT_THAT(Told(sequence, CsvColumn(absl::StrCat(padded, 9))), IsEmpty());
  EXPECT_THAT(Told(sequence, CsvColumn(absl::StrCat(padded, 10))),
              ElementsAre(HasSubstr("padding: column \"x\" has `padding` 10, the model has rows")));
  EXPECT_THAT(
      Told(sequence, CsvColumn("kind: HASH buckets: 9 separator: ' ' length: 3 padding: 10")),
      ElementsAre(HasSubstr("padding: ")));
}

TEST(ColumnMisfitsTest, IdsOfTheColumnHaveRows) {
  const OneColumn one(One(kInt64), 10);
  EXPECT_THAT(Told(one, CsvColumn("kind: HASH buckets: 11")),
              ElementsAre("buckets: column \"x\" is hashed into 11 buckets, the model has rows for "
                          "10; write buckets: 10, or more rows in the model"));
  EXPECT_THAT(Told(one, CsvColumn("kind: VOCABULARY vocabulary: 'a\\nb\\n' oov_buckets: 9")),
              ElementsAre(": column \"x\" has ids from 0 to 10, the model has rows for 10; write "
                          "rows: 11 in the model"));
  // The reader refuses the file's own ids.
  EXPECT_THAT(Told(one, CsvColumn("kind: ID buckets: 11")), IsEmpty());
}

}  // namespace
}  // namespace mu
