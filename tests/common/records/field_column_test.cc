// Numbers that a float does not hold, such as times and dates, on their way into a column.
#include "common/records/field_column.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/common/records/parsed.h"

namespace mu {
namespace {

using ::mu::testing::Parsed;
using ::testing::ElementsAre;

constexpr int64_t kTime = 1'700'000'000;  // floats near it are 128 apart

FieldColumn Column(const std::string& column) {
  pb::CsvColumnProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("name: \"x\" " + column, &proto));
  return FieldColumn(proto);
}

template <typename T>
float ToFloat(const FieldColumn& column, T value) {
  float number = 0;
  std::string error;
  EXPECT_TRUE(column.ToFloat(value, &number, &error)) << error;
  return number;
}

template <typename T>
int64_t ToId(const FieldColumn& column, T value) {
  int64_t id = -1;
  std::string error;
  EXPECT_TRUE(column.ToId(value, &id, &error)) << error;
  return id;
}

pb::DatasetProto Jsonl(const std::string& columns) {
  pb::DatasetProto dataset;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(columns, dataset.mutable_jsonl()));
  return dataset;
}

TEST(FieldColumnTest, TimesThatAreStandardisedStayApart) {
  const FieldColumn column = Column("kind: NUMBER mean: 1700000049.5 stddev: 28.87");
  std::set<float> values;
  for (int64_t i = 0; i < 100; ++i) {
    const auto expected = static_cast<float>((static_cast<double>(i) - 49.5) / 28.87);
    EXPECT_EQ(ToFloat(column, absl::string_view(absl::StrCat(kTime + i))), expected) << i;
    EXPECT_EQ(ToFloat(column, kTime + i), expected) << i;
    values.insert(ToFloat(column, kTime + i));
  }
  EXPECT_EQ(values.size(), 100u);
  EXPECT_FLOAT_EQ(*values.begin(), -1.7145826f);
  EXPECT_FLOAT_EQ(*values.rbegin(), 1.7145826f);
}

TEST(FieldColumnTest, ABoundaryAmongTimesIsMetWhereItIs) {
  const FieldColumn column = Column("kind: BUCKET boundaries: 1700000050");
  EXPECT_EQ(ToId(column, absl::string_view("1700000049")), 0);
  EXPECT_EQ(ToId(column, absl::string_view("1700000049.999")), 0);
  EXPECT_EQ(ToId(column, absl::string_view("1700000050")), 1);
  EXPECT_EQ(ToId(column, kTime + 49), 0);
  EXPECT_EQ(ToId(column, kTime + 50), 1);
}

TEST(FieldColumnTest, TimesOfJson) {
  Parsed parsed(Jsonl(R"pb(
    columns { name: "number" kind: NUMBER field: "ts" mean: 1700000049.5 stddev: 28.87 }
    columns { name: "bucket" kind: BUCKET field: "ts" boundaries: 1700000050 }
  )pb"));
  for (const char* record : {R"({"ts": 1700000049})", R"({"ts": "1700000050"})"})
    EXPECT_EQ(parsed.Add(record), "");
  EXPECT_THAT(parsed.Values<float>("number"),
              ElementsAre(static_cast<float>(-0.5 / 28.87), static_cast<float>(0.5 / 28.87)));
  EXPECT_THAT(parsed.Values<int64_t>("bucket"), ElementsAre(0, 1));
}

// 0.7 lies above the float that is nearest to it.
TEST(FieldColumnTest, AFloatMeetsTheBoundaryThatItIsWrittenAs) {
  const FieldColumn column = Column("kind: BUCKET boundaries: [0.1, 0.7]");
  for (const float number : {0.1f, 0.7f, 0.69f, 0.05f, 0.71f}) {
    EXPECT_EQ(ToId(column, number), ToId(column, absl::string_view(absl::StrCat(number))))
        << number;
  }
  EXPECT_EQ(ToId(column, 0.7f), 2);
  EXPECT_EQ(ToId(column, 0.69f), 1);
}

// Above half a float's step by less than a double shows.
TEST(FieldColumnTest, ALargeIntegerIsItsText) {
  const FieldColumn column = Column("kind: NUMBER");
  const int64_t integer = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(ToFloat(column, integer), 0x1.000002p60f);
  EXPECT_EQ(ToFloat(column, absl::string_view(absl::StrCat(integer))), 0x1.000002p60f);
}

}  // namespace
}  // namespace mu
