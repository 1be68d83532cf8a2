// What fields become in columns of every kind and form. The records are JSON, the shortest way to
// say a list, a number or nothing.
#include "common/records/field_columns.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/records/packed_text.h"
#include "tests/common/records/parsed.h"

namespace mu {
namespace {

using ::mu::testing::Parsed;
using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

pb::DatasetProto Jsonl(const std::string& columns) {
  pb::DatasetProto dataset;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(columns, dataset.mutable_jsonl()));
  return dataset;
}

Parsed Column(const std::string& column) {
  return Parsed(Jsonl("columns { name: \"x\" " + column + " } missing: \"?\""));
}

TEST(FieldColumnsTest, Numbers) {
  Parsed plain = Column("kind: NUMBER missing_value: -1");
  for (const char* value : {"1.5", "\"2\"", "null", "\"?\"", "\"\"", "true"})
    EXPECT_EQ(plain.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_EQ(plain.Add("{}"), "");
  EXPECT_THAT(plain.Values<float>("x"), ElementsAre(1.5, 2, -1, -1, -1, 1, -1));
  EXPECT_THAT(plain.Add("{\"x\": \"a\"}"), HasSubstr("column x: \"a\" is not a finite number"));
  EXPECT_THAT(plain.Add("{\"x\": \" 7\"}"), HasSubstr("write trim: true"));
  EXPECT_THAT(Column("kind: NUMBER required: true").Add("{}"), HasSubstr("missing, but required"));
}

TEST(FieldColumnsTest, StandardisedNumbersKeepTheMissingValue) {
  Parsed parsed = Column("kind: NUMBER mean: 10 stddev: 4 missing_value: 0");
  EXPECT_EQ(parsed.Add("{\"x\": 12}"), "");
  EXPECT_EQ(parsed.Add("{\"x\": null}"), "");
  EXPECT_THAT(parsed.Values<float>("x"), ElementsAre(0.5, 0));
  Parsed centred = Column("kind: NUMBER mean: 10");
  EXPECT_EQ(centred.Add("{\"x\": 12}"), "");
  EXPECT_THAT(centred.Values<float>("x"), ElementsAre(2));
}

// What fields hold, unpacked.
std::vector<std::string> TextsOf(const Parsed& parsed, const std::string& column) {
  const std::vector<int64_t> values = parsed.Values<int64_t>(column + ".values");
  const std::vector<int32_t> splits = parsed.Values<int32_t>(column + ".splits");
  std::vector<std::string> texts;
  for (size_t i = 0; i + 1 < splits.size(); ++i) {
    const auto begin = static_cast<size_t>(splits[i]), end = static_cast<size_t>(splits[i + 1]);
    texts.push_back(UnpackText(absl::MakeSpan(values).subspan(begin, end - begin)));
  }
  return texts;
}

TEST(FieldColumnsTest, TextsStayAsTheyAre) {
  Parsed json = Column("kind: TEXT");
  for (const char* value : {"1.50", "\"two\\n\\u0061\"", "null", "\"?\"", "\"\"", "true",
                            "\"12345678\"", "\"0123456789abcdefg\""})
    EXPECT_EQ(json.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_EQ(json.Add("{}"), "");
  EXPECT_THAT(TextsOf(json, "x"), ElementsAre("1.50", "two\na", "", "?", "", "true", "12345678",
                                              "0123456789abcdefg", ""));
  EXPECT_THAT(json.Add("{\"x\": [1]}"), HasSubstr("is an array"));

  pb::DatasetProto dataset;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(header: true
           missing: "?"
           columns { name: "a" kind: NUMBER index: -1 mean: 1 }
           columns { name: "b" kind: ID index: 1 }
           columns { name: "a.text" kind: TEXT index: -1 field: "a" }
           columns { name: "b.text" kind: TEXT index: 1 })pb",
      dataset.mutable_csv()));
  Parsed csv(dataset, "a,b");
  EXPECT_EQ(csv.Add("1e1,007"), "");
  EXPECT_EQ(csv.Add("?,\"1\""), "");
  EXPECT_THAT(csv.Values<float>("a"), ElementsAre(9, 0));
  EXPECT_THAT(csv.Values<int64_t>("b"), ElementsAre(7, 1));
  EXPECT_THAT(TextsOf(csv, "a.text"), ElementsAre("1e1", "?"));
  EXPECT_THAT(TextsOf(csv, "b.text"), ElementsAre("007", "1"));
}

TEST(FieldColumnsTest, ATextIsTheWholeField) {
  for (const char* form : {"list: true", "list: true length: 3"}) {
    EXPECT_THAT(
        CheckFormat(Jsonl(absl::StrCat("columns { name: \"x\" kind: TEXT ", form, " }"))),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a text is the whole field")))
        << form;
  }
}

TEST(FieldColumnsTest, NumbersOfAShape) {
  Parsed parsed = Column("kind: NUMBER list: true shape: 2 shape: 2 missing_value: 9 mean: 1");
  EXPECT_EQ(parsed.Add("{\"x\": [1, 2, null, 4]}"), "");
  EXPECT_EQ(parsed.Add("{}"), "");
  EXPECT_THAT(parsed.Values<float>("x"), ElementsAre(0, 1, 9, 3, 9, 9, 9, 9));
  EXPECT_EQ(parsed.ShapeOf("x"), Shape({2, 2, 2}));
  EXPECT_THAT(parsed.Add("{\"x\": [1]}"), HasSubstr("has 1 values, but its shape has 4"));
}

TEST(FieldColumnsTest, Ids) {
  Parsed parsed = Column("kind: ID buckets: 10 missing_id: 3");
  for (const char* value : {"7", "\"8\"", "null"})
    EXPECT_EQ(parsed.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_THAT(parsed.Values<int64_t>("x"), ElementsAre(7, 8, 3));
  EXPECT_THAT(parsed.Add("{\"x\": 10}"), HasSubstr("is not below 10"));
  EXPECT_THAT(parsed.Add("{\"x\": -1}"), HasSubstr("is negative"));
  EXPECT_THAT(parsed.Add("{\"x\": 1.5}"), HasSubstr("is not an integer"));
  EXPECT_THAT(Column("kind: ID").Add("{}"), HasSubstr("nothing stands for a missing id"));
}

TEST(FieldColumnsTest, HashesDependOnNameOrSeed) {
  Parsed by_name = Column("kind: HASH buckets: 1000");
  EXPECT_EQ(by_name.Add("{\"x\": \"a\"}"), "");
  EXPECT_EQ(by_name.Add("{}"), "");
  const BucketHash of_name(HashString("x"), 1000);
  EXPECT_THAT(by_name.Values<int64_t>("x"), ElementsAre(of_name.OfText("a"), of_name.OfMissing()));
  Parsed by_seed = Column("kind: HASH buckets: 1000 seed: 5");
  EXPECT_EQ(by_seed.Add("{\"x\": \"a\"}"), "");
  EXPECT_THAT(by_seed.Values<int64_t>("x"), ElementsAre(BucketHash(5, 1000).OfText("a")));
}

TEST(FieldColumnsTest, Classes) {
  Parsed parsed = Column("kind: CLASS classes: [\"red\", \"green\"] missing_id: 2");
  for (const char* value : {"\"green\"", "\"red\"", "null"})
    EXPECT_EQ(parsed.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_THAT(parsed.Values<int64_t>("x"), ElementsAre(1, 0, 2));
  EXPECT_THAT(parsed.Add("{\"x\": \"blue\"}"),
              HasSubstr("\"blue\" is none of the column's classes: red, green"));
  EXPECT_THAT(parsed.Add("{\"x\": \" red\"}"), HasSubstr("write trim: true"));
}

TEST(FieldColumnsTest, Vocabularies) {
  const std::string texts = "kind: VOCABULARY vocabulary: \"paris\\nrome\\n\" ";
  Parsed one = Column(texts + "oov_buckets: 1");
  for (const char* value : {"\"rome\"", "\"paris\"", "\"bonn\"", "null"})
    EXPECT_EQ(one.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_THAT(one.Values<int64_t>("x"), ElementsAre(1, 0, 2, 2));
  Parsed several = Column(texts + "oov_buckets: 50");
  EXPECT_EQ(several.Add("{\"x\": \"bonn\"}"), "");
  EXPECT_THAT(several.Values<int64_t>("x"), ElementsAre(2 + BucketHash(0, 50).OfText("bonn")));
  Parsed none = Column(texts);
  EXPECT_THAT(none.Add("{\"x\": \"bonn\"}"), HasSubstr("none of the 2 texts of its vocabulary"));
  EXPECT_THAT(none.Add("{}"), HasSubstr("nothing stands for a missing id"));
}

TEST(FieldColumnsTest, Buckets) {
  Parsed parsed = Column("kind: BUCKET boundaries: [0, 10, 20]");
  for (const char* value : {"-5", "0", "9.5", "10", "20", "1000", "null"})
    EXPECT_EQ(parsed.Add(absl::StrCat("{\"x\": ", value, "}")), "");
  EXPECT_THAT(parsed.Values<int64_t>("x"), ElementsAre(0, 1, 1, 2, 3, 3, 4));
}

TEST(FieldColumnsTest, Crosses) {
  Parsed parsed(Jsonl(R"pb(
    columns {
      name: "age"
      kind: BUCKET
      boundaries: [ 18, 65 ]
    }
    columns {
      name: "ages and jobs"
      kind: CROSS
      of: [ "age", "job" ]
      buckets: 5000
    }
    columns { name: "job" kind: HASH buckets: 10 }
  )pb"));
  for (const char* record :
       {R"({"age": 30, "job": "cook"})", R"({"age": 31, "job": "cook"})",
        R"({"age": 70, "job": "cook"})", R"({"job": "cook"})", R"({"age": 30})"}) {
    EXPECT_EQ(parsed.Add(record), "");
  }
  const BucketHash hash(HashString("ages and jobs"), 5000);
  const auto cross = [&](uint64_t age, uint64_t job) {
    return hash.OfValue(HashCombine(age, job));
  };
  const uint64_t cook = HashString("cook");
  EXPECT_THAT(parsed.Values<int64_t>("ages and jobs"),
              ElementsAre(cross(1, cook), cross(1, cook), cross(2, cook),
                          cross(BucketHash::kMissing, cook), cross(1, BucketHash::kMissing)));
  EXPECT_THAT(parsed.Values<int64_t>("age"), ElementsAre(1, 1, 2, 3, 1));
}

TEST(FieldColumnsTest, Lists) {
  Parsed parsed = Column("kind: ID list: true weight_field: \"w\"");
  EXPECT_EQ(parsed.Add(R"({"x": [3, 4], "w": [0.5, 2]})"), "");
  EXPECT_EQ(parsed.Add(R"({"w": []})"), "");
  EXPECT_EQ(parsed.Add(R"({"x": [5, null], "w": [1, 1]})"), "");
  for (const char* wrong : {R"({"x": [1]})", R"({"x": [1], "w": []})", R"({"x": [1], "w": [1, 2]})",
                            R"({"x": [1], "w": 1})", R"({"x": [1], "w": ["1"]})"}) {
    EXPECT_THAT(parsed.Add(wrong), HasSubstr("\"w\" must be an array of as many numbers")) << wrong;
  }
  EXPECT_THAT(parsed.Add(R"({"x": 1, "w": [1]})"), HasSubstr("is no array"));
  EXPECT_THAT(parsed.Values<int64_t>("x.values"), ElementsAre(3, 4, 5));
  EXPECT_THAT(parsed.Values<int32_t>("x.splits"), ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(parsed.Values<float>("x.weights"), ElementsAre(0.5, 2, 1));
}

TEST(FieldColumnsTest, Sequences) {
  const std::string column = "kind: ID list: true length: 3 padding: 9 ";
  Parsed first = Column(column), last = Column(column + "truncate: TRUNCATE_BEGIN");
  for (const char* record : {R"({"x": [1]})", R"({"x": [1, 2, 3, 4]})", "{}"}) {
    EXPECT_EQ(first.Add(record), "");
    EXPECT_EQ(last.Add(record), "");
  }
  EXPECT_EQ(first.ShapeOf("x"), Shape({3, 3}));
  EXPECT_THAT(first.Values<int64_t>("x"), ElementsAre(1, 9, 9, 1, 2, 3, 9, 9, 9));
  EXPECT_THAT(last.Values<int64_t>("x"), ElementsAre(1, 9, 9, 2, 3, 4, 9, 9, 9));
  EXPECT_THAT(first.Values<int64_t>("x.length"), ElementsAre(1, 3, 0));
  Parsed numbers = Column("kind: NUMBER list: true length: 2 missing_value: -1 stddev: 2");
  EXPECT_EQ(numbers.Add(R"({"x": [4]})"), "");
  EXPECT_EQ(numbers.Add(R"({"x": [null, 6, 8]})"), "");
  EXPECT_THAT(numbers.Values<float>("x"), ElementsAre(2, -1, -1, 3));
  EXPECT_THAT(numbers.Values<int64_t>("x.length"), ElementsAre(1, 2));
}

// Among numbers an empty value has a place and counts, among ids it is left out.
TEST(FieldColumnsTest, EmptyValuesOfSequences) {
  const std::string numbers = "kind: NUMBER length: 4 missing_value: -1 ";
  const std::string ids = "kind: ID length: 4 padding: 9 ";
  const auto csv = [](const std::string& column) {
    pb::DatasetProto dataset;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        "header: true columns { name: \"x\" separator: \"|\" " + column + " }",
        dataset.mutable_csv()));
    return Parsed(dataset, "x");
  };
  Parsed number_fields = csv(numbers), id_fields = csv(ids);
  Parsed number_arrays = Column(numbers + "list: true"), id_arrays = Column(ids + "list: true");
  for (Parsed* parsed : {&number_fields, &id_fields}) EXPECT_EQ(parsed->Add("1||2"), "");
  for (Parsed* parsed : {&number_arrays, &id_arrays})
    EXPECT_EQ(parsed->Add(R"({"x": [1, null, 2]})"), "");
  for (const Parsed* parsed : {&number_fields, &number_arrays}) {
    EXPECT_THAT(parsed->Values<float>("x"), ElementsAre(1, -1, 2, -1));
    EXPECT_THAT(parsed->Values<int64_t>("x.length"), ElementsAre(3));
  }
  for (const Parsed* parsed : {&id_fields, &id_arrays}) {
    EXPECT_THAT(parsed->Values<int64_t>("x"), ElementsAre(1, 2, 9, 9));
    EXPECT_THAT(parsed->Values<int64_t>("x.length"), ElementsAre(2));
  }
}

TEST(FieldColumnsTest, ABadRecordLeavesNothingBehind) {
  Parsed parsed(Jsonl(R"pb(
    columns { name: "a" kind: ID list: true }
    columns { name: "b" kind: ID list: true length: 2 }
    columns { name: "c" kind: ID }
  )pb"));
  EXPECT_EQ(parsed.Add(R"({"a": [1], "b": [2], "c": 3})"), "");
  EXPECT_NE(parsed.Add(R"({"a": [7, 7], "b": [7, 7], "c": "x"})"), "");
  EXPECT_EQ(parsed.Add(R"({"a": [4], "b": [5, 6], "c": 8})"), "");
  EXPECT_THAT(parsed.Values<int64_t>("a.values"), ElementsAre(1, 4));
  EXPECT_THAT(parsed.Values<int64_t>("b"), ElementsAre(2, 0, 5, 6));
  EXPECT_THAT(parsed.Values<int64_t>("c"), ElementsAre(3, 8));
}

TEST(FieldColumnsTest, RefusesWhatMakesNoSense) {
  const auto refuse = [](const std::string& columns, const std::string& what) {
    EXPECT_THAT(CheckFormat(Jsonl(columns)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)))
        << columns;
  };
  refuse("", "no columns are named");
  refuse("columns {}", "a column has no name");
  const auto column = [](const std::string& text) {
    return "columns { name: \"x\" " + text + " }";
  };
  refuse(column("") + column(""), "two columns have the name x");
  refuse(column("kind: HASH"), "buckets above 0");
  refuse(column("kind: ID buckets: -1"), "buckets is negative");
  refuse(column("kind: LABEL"), "positive");
  refuse(column("kind: CLASS"), "needs its classes");
  refuse(column("kind: CLASS classes: [\"a\", \"a\"]"), "named twice");
  refuse(column("kind: VOCABULARY"), "file of its vocabulary");
  refuse(column("kind: BUCKET"), "needs the boundaries");
  refuse(column("kind: BUCKET boundaries: [2, 1]"), "numbers that grow");
  refuse(column("kind: BUCKET boundaries: [nan]"), "numbers that grow");
  refuse(column("separator: \"|\" shape: 2"), "write list: true");
  refuse(column("list: true"), "give numbers a shape or a length");
  refuse(column("shape: 2"), "need a separator (csv) or list: true");
  refuse(column("kind: LABEL positive: \"1\" list: true"), "has one value, no list");
  refuse(column("kind: ID list: true shape: 2"), "only numbers have a shape");
  refuse(column("kind: ID length: 2"), "several values");
  refuse(column("list: true shape: 0"), "sizes above 0");
  refuse(column("list: true shape: 5000 shape: 5000"), "16,777,216");
  refuse(column("list: true length: 4294967295"), "16,777,216");
  refuse(column("kind: ID weight_field: \"w\""), "weights are for lists");
  refuse(column("kind: ID mean: 1"), "for numbers");
  refuse(column("stddev: 0"), "above 0");
  refuse(column("mean: nan"), "not finite");
  refuse(column("mean: -1e39"), "mean must be within a float's range");
  refuse(column("stddev: 1e39"), "stddev must be within a float's range");
  refuse(column("stddev: 1e-60"), "stddev must be within a float's range");
  refuse(column("kind: BUCKET boundaries: [1, 1e39]"), "within a float's range");
  refuse(column("kind: ID missing_id: -1"), "from 0");
  refuse(column("kind: CROSS buckets: 9 of: \"y\""), "at least two");
  refuse(column("kind: CROSS buckets: 9 of: [\"y\", \"y\"]"), "is no column");
  refuse(column("kind: ID list: true") +
             "columns { name: \"z\" kind: CROSS buckets: 9 of: [\"x\", \"x\"] }",
         "only columns of one value");
  refuse(column("kind: TEXT") + "columns { name: \"z\" kind: CROSS buckets: 9 of: [\"x\", \"x\"] }",
         "no crosses or copied texts");
  refuse(column("of: \"x\""), "for crosses");
  const pb::DatasetProto unread = Jsonl(column("kind: VOCABULARY vocabulary_file: \"v\""));
  EXPECT_THAT(CheckFormat(unread), testing::IsOk());
  EXPECT_THAT(MakeRecordFormat(unread),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("are not in the dataset")));
}

// The model could not tell them apart, and the reader would write into another column.
TEST(FieldColumnsTest, RefusesColumnsThatTakeOneName) {
  const auto check = [](const std::string& one, const std::string& other) {
    const absl::Status status = CheckFormat(Jsonl(
        absl::StrCat("columns { ", one, " } columns { ", other, " } columns { name: \"y\" }")));
    const absl::Status reversed = CheckFormat(Jsonl(
        absl::StrCat("columns { ", other, " } columns { ", one, " } columns { name: \"y\" }")));
    EXPECT_EQ(status.code(), reversed.code()) << status << " " << reversed;
    return status;
  };
  const std::string list = "name: \"items\" kind: ID list: true buckets: 7";
  const std::string weighted = list + " weight_field: \"w\"";
  const std::string sequence = list + " length: 3";
  EXPECT_THAT(check(list, "name: \"items.weights\""),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the columns items and items.weights both take the name "
                                 "items.weights: a list takes NAME.values, NAME.splits and "
                                 "NAME.weights, a sequence NAME.length; rename one of the two")));
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {weighted, "name: \"items.weights\""},
      {weighted, "name: \"items.weights\" kind: ID"},
      {list, "name: \"items.values\""},
      {list, "name: \"items.splits\" kind: ID"},
      {sequence, "name: \"items.length\""},
      {"name: \"items\" list: true length: 2", "name: \"items.length\""},
      {"name: \"items\" kind: TEXT", "name: \"items.values\" kind: ID"}};
  for (const auto& [one, other] : wrong) {
    EXPECT_THAT(check(one, other),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("both take the name")))
        << one << ", " << other;
  }
  for (const auto& [one, other] : std::vector<std::pair<std::string, std::string>>{
           {list, "name: \"items.length\""},
           {sequence, "name: \"items.weights\""},
           {"name: \"items\"", "name: \"items.values\""},
           {list, "name: \"items.values\" kind: ID list: true"}}) {
    MU_EXPECT_OK(check(one, other)) << one << ", " << other;
  }
}

TEST(ColumnSetTest, WeightsAreNumbersOfAList) {
  const auto columns = [](const std::string& other) {
    const pb::DatasetProto dataset = Jsonl(absl::StrCat(
        "columns { name: \"x\" kind: ID list: true } columns { name: \"x.weights\" ", other, " }"));
    return ColumnSet(SchemaOf(dataset), /*capacity=*/1).columns();
  };
  EXPECT_EQ(columns("kind: ID"), 2);
  EXPECT_EQ(columns("list: true shape: 3"), 2);
}

TEST(IdBoundTest, CoversMissingValuesAndPadding) {
  const auto bound = [](const std::string& text) {
    return IdBoundOf(Jsonl("columns { name: \"x\" " + text + " }").jsonl().columns(0));
  };
  EXPECT_EQ(bound("kind: NUMBER"), 0);
  EXPECT_EQ(bound("kind: ID"), 0);
  EXPECT_EQ(bound("kind: ID buckets: 10"), 10);
  EXPECT_EQ(bound("kind: ID buckets: 10 missing_id: 10"), 11);
  EXPECT_EQ(bound("kind: ID buckets: 10 list: true length: 3 padding: 12"), 13);
  EXPECT_EQ(bound("kind: CLASS classes: [\"a\", \"b\"]"), 2);
  EXPECT_EQ(bound("kind: VOCABULARY vocabulary: \"a\\nb\\n\" oov_buckets: 3"), 5);
  EXPECT_EQ(bound("kind: BUCKET boundaries: [1, 2]"), 4);
  EXPECT_EQ(bound("kind: BUCKET boundaries: [1, 2] missing_id: 0"), 3);
}

}  // namespace
}  // namespace mu
