#include "common/records/tfrecord_format.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/records/first_values.h"
#include "common/records/packed_text.h"
#include "tests/common/records/example.pb.h"
#include "tests/common/records/parsed.h"

namespace mu {
namespace {

using ::mu::testing::Parsed;
using ::muster::testing::Example;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

pb::DatasetProto Tfrecord(const std::string& text) {
  pb::DatasetProto dataset;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, dataset.mutable_tfrecord()));
  return dataset;
}

std::string Frame(const std::string& features) {
  Example example;
  EXPECT_TRUE(
      google::protobuf::TextFormat::ParseFromString("features { " + features + " }", &example));
  return TfrecordFrame(example.SerializeAsString());
}

std::string Feature(const std::string& name, const std::string& list) {
  return absl::StrCat("feature { key: \"", name, "\" value { ", list, " } } ");
}

constexpr char kColumns[] = R"pb(
  columns { name: "dense" kind: NUMBER list: true shape: 2 }
  columns { name: "user" kind: ID buckets: 1000 }
  columns { name: "city" kind: HASH buckets: 100 }
  columns { name: "tags" kind: ID list: true weight_field: "tag_weights" }
  columns { name: "label" kind: LABEL positive: "1" }
)pb";

const std::string kGood = Feature("dense", "float_list { value: [1.5, -2] }") +
                          Feature("user", "int64_list { value: 7 }") +
                          Feature("city", "bytes_list { value: \"bonn\" }") +
                          Feature("tags", "int64_list { value: [3, 4] }") +
                          Feature("tag_weights", "float_list { value: [0.5, 2] }") +
                          Feature("label", "int64_list { value: 1 }") +
                          Feature("not wanted", "bytes_list { value: \"x\" }");

TEST(TfrecordTest, TextsOfFeaturesOfEveryType) {
  Parsed parsed(Tfrecord("columns { name: \"x\" kind: TEXT }"));
  for (const char* list : {"int64_list { value: -7 }", "float_list { value: 0.1 }",
                           "bytes_list { value: \"bonn\" }", "bytes_list { value: \"\" }"})
    EXPECT_EQ(parsed.Add(Frame(Feature("x", list))), "") << list;
  const std::vector<int64_t> values = parsed.Values<int64_t>("x.values");
  const std::vector<int32_t> splits = parsed.Values<int32_t>("x.splits");
  std::vector<std::string> texts;
  for (size_t i = 0; i + 1 < splits.size(); ++i)
    texts.push_back(UnpackText(absl::MakeSpan(values).subspan(
        static_cast<size_t>(splits[i]), static_cast<size_t>(splits[i + 1] - splits[i]))));
  EXPECT_THAT(texts, ElementsAre("-7", "0.1", "bonn", ""));
}

TEST(TfrecordTest, ReadsFeaturesOfEveryType) {
  Parsed parsed(Tfrecord(kColumns));
  EXPECT_EQ(parsed.Add(Frame(kGood)), "");
  EXPECT_EQ(parsed.Add(Frame(Feature("user", "int64_list { value: 8 }") +
                             Feature("dense", "int64_list { value: [3, 4] }") +
                             Feature("tags", "bytes_list { value: [] }"))),
            "");
  EXPECT_THAT(parsed.Values<float>("dense"), ElementsAre(1.5, -2, 3, 4));
  EXPECT_THAT(parsed.Values<int64_t>("user"), ElementsAre(7, 8));
  const BucketHash hash(HashString("city"), 100);
  EXPECT_THAT(parsed.Values<int64_t>("city"), ElementsAre(hash.OfText("bonn"), hash.OfMissing()));
  EXPECT_THAT(parsed.Values<int64_t>("tags.values"), ElementsAre(3, 4));
  EXPECT_THAT(parsed.Values<float>("tags.weights"), ElementsAre(0.5, 2));
  EXPECT_THAT(parsed.Values<int32_t>("tags.splits"), ElementsAre(0, 2, 2));
  EXPECT_THAT(parsed.Values<float>("label"), ElementsAre(1, 0));
}

// An int64 and its decimal text are one value.
TEST(TfrecordTest, NamesOfFeatures) {
  std::set<std::string> names;
  AddFieldNames(Tfrecord(kColumns), Frame(kGood), &names);
  EXPECT_THAT(names,
              ElementsAre("city", "dense", "label", "not wanted", "tag_weights", "tags", "user"));
}

TEST(TfrecordTest, IntegersAreTheirText) {
  const std::string columns = R"pb(
    columns { name: "a" kind: HASH buckets: 100 }
    columns {
      name: "b"
      kind: CLASS
      classes: [ "x", "-12" ]
      field: "a"
    }
    columns {
      name: "c"
      kind: CROSS
      of: [ "a", "b" ]
      buckets: 1000
    }
  )pb";
  Parsed parsed(Tfrecord(columns));
  EXPECT_EQ(parsed.Add(Frame(Feature("a", "int64_list { value: -12 }"))), "");
  EXPECT_EQ(parsed.Add(Frame(Feature("a", "bytes_list { value: \"-12\" }"))), "");
  for (const char* name : {"a", "b", "c"}) {
    const std::vector<int64_t> ids = parsed.Values<int64_t>(name);
    ASSERT_THAT(ids, SizeIs(2));
    EXPECT_EQ(ids[0], ids[1]) << name;
  }
}

// A float keeps multiples of 128 of them.
TEST(TfrecordTest, TimesAreStandardisedAndBucketed) {
  Parsed parsed(Tfrecord(R"pb(
    columns { name: "number" kind: NUMBER field: "ts" mean: 1700000049.5 stddev: 28.87 }
    columns { name: "bucket" kind: BUCKET field: "ts" boundaries: 1700000050 }
  )pb"));
  for (const char* list :
       {"int64_list { value: 1700000049 }", "int64_list { value: 1700000050 }",
        "bytes_list { value: \"1700000049\" }", "bytes_list { value: \"1700000050\" }"})
    EXPECT_EQ(parsed.Add(Frame(Feature("ts", list))), "") << list;
  const auto below = static_cast<float>(-0.5 / 28.87), above = static_cast<float>(0.5 / 28.87);
  EXPECT_THAT(parsed.Values<float>("number"), ElementsAre(below, above, below, above));
  EXPECT_THAT(parsed.Values<int64_t>("bucket"), ElementsAre(0, 1, 0, 1));
}

// As the same numbers of csv.
TEST(TfrecordTest, FloatsAreCrossedByTheirText) {
  constexpr char kCrosses[] = R"pb(
    columns { name: "n" kind: NUMBER index: -1 mean: 7 }
    columns { name: "bucket" kind: BUCKET index: -1 field: "n" boundaries: 1 }
    columns { name: "city" kind: HASH index: -1 buckets: 10 }
    columns {
      name: "by_text"
      kind: CROSS
      of: [ "n", "city" ]
      buckets: 1000000
    }
    columns {
      name: "by_bucket"
      kind: CROSS
      of: [ "bucket", "city" ]
      buckets: 1000000
    }
  )pb";
  pb::DatasetProto text;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kCrosses, text.mutable_csv()));
  text.mutable_csv()->set_header(true);
  Parsed csv(text, "n,city"), tfrecord(Tfrecord(kCrosses));
  for (const char* number : {"0.5", "0.7", "1.5", "16777216", ""}) {
    EXPECT_EQ(csv.Add(absl::StrCat(number, ",bonn")), "") << number;
    EXPECT_EQ(
        tfrecord.Add(Frame(Feature("n", absl::StrCat("float_list { value: [", number, "] }")) +
                           Feature("city", "bytes_list { value: \"bonn\" }"))),
        "")
        << number;
  }
  const std::vector<int64_t> by_text = tfrecord.Values<int64_t>("by_text");
  EXPECT_EQ(by_text, csv.Values<int64_t>("by_text"));
  EXPECT_THAT(std::set<int64_t>(by_text.begin(), by_text.end()), SizeIs(5));
  const std::vector<int64_t> by_bucket = tfrecord.Values<int64_t>("by_bucket");
  EXPECT_EQ(by_bucket, csv.Values<int64_t>("by_bucket"));
  EXPECT_EQ(by_bucket[0], by_bucket[1]);
  EXPECT_NE(by_bucket[1], by_bucket[2]);
}

TEST(TfrecordTest, NamesWhatIsWrong) {
  Parsed parsed(Tfrecord(kColumns));
  const auto with = [](const std::string& name, const std::string& list) {
    return Frame(kGood + Feature(name, list));  // of a key that comes twice the last counts
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("user", "int64_list { value: [1, 2] }"), "column user: the feature has 2 values"},
      {with("user", "int64_list { value: 1000 }"), "column user: \"1000\" is not below 1000"},
      {with("user", "float_list { value: 1 }"), "column user: the feature holds floats"},
      {with("user", ""), "column user: is missing"},
      {with("label", "float_list { value: 1 }"), "a label's texts are bytes or int64"},
      {with("dense", "float_list { value: 1 }"), "has 1 values, but its shape has 2"},
      {with("dense", "float_list { value: [1, inf] }"), "inf is not a finite number"},
      {with("tag_weights", "float_list { value: 1 }"),
       "as many finite floats as there are values, 2"},
      {with("tag_weights", "float_list { value: [1, nan] }"), "as many finite floats"},
      {with("tag_weights", ""), "as many finite floats"},
      {TfrecordFrame("\x0A\x7F"), "no tf.Example message"},
      {TfrecordFrame("\xFF\xFF\xFF"), "no tf.Example message"}};
  for (const auto& [frame, what] : cases) EXPECT_THAT(parsed.Add(frame), HasSubstr(what));
  std::string damaged = Frame(kGood);
  damaged[40] ^= 1;
  EXPECT_THAT(parsed.Add(damaged), HasSubstr("checksum is wrong"));
  EXPECT_EQ(parsed.Add(Frame(kGood)), "");
}

TEST(TfrecordTest, ListsThatAreNotPacked) {
  muster::testing::UnpackedInts ints;
  muster::testing::UnpackedFloats floats;
  for (int i = 1; i <= 2; ++i) {
    ints.add_value(-i);
    floats.add_value(0.5f * static_cast<float>(i));
  }
  // A Feature, an entry of the map and the messages around it, by hand.
  const auto field = [](int number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const auto entry = [&](const std::string& name, int list, const std::string& bytes) {
    return field(1, field(1, name) + field(2, field(list, bytes)));
  };
  Parsed parsed(Tfrecord(R"pb(
    columns { name: "i" kind: NUMBER list: true shape: 2 }
    columns { name: "f" kind: NUMBER list: true shape: 2 }
  )pb"));
  EXPECT_EQ(parsed.Add(TfrecordFrame(field(1, entry("i", 3, ints.SerializeAsString()) +
                                                  entry("f", 2, floats.SerializeAsString())))),
            "");
  EXPECT_THAT(parsed.Values<float>("i"), ElementsAre(-1, -2));
  EXPECT_THAT(parsed.Values<float>("f"), ElementsAre(0.5, 1));
}

TEST(TfrecordTest, TellsFramesApart) {
  const auto format = MakeRecordFormat(Tfrecord(kColumns)).value();
  const FileFormat file = format->Open(0, "").value();
  const std::string one = Frame(kGood), two = TfrecordFrame("");
  const std::string all = one + two;
  FoundRecord found;
  const auto find = [&](const std::string& bytes, bool last) {
    return file.finder->Find(bytes.data(), bytes.data() + bytes.size(), last, 5, &found);
  };
  EXPECT_EQ(find(all, false), FindResult::kFound);
  EXPECT_EQ(found.text, one);
  EXPECT_EQ(found.line, 5u);
  EXPECT_EQ(found.next_line, 6u);
  for (size_t size : {size_t{0}, size_t{5}, size_t{12}, one.size() - 1}) {
    EXPECT_EQ(find(one.substr(0, size), false), FindResult::kMore) << size;
    EXPECT_EQ(find(one.substr(0, size), true), size == 0 ? FindResult::kEnd : FindResult::kBroken);
  }
  std::string damaged = one;
  damaged[0] ^= 1;
  EXPECT_EQ(find(damaged, false), FindResult::kBroken);
  EXPECT_THAT(found.problem, HasSubstr("checksum of a record's length is wrong"));
  EXPECT_EQ(format->Place("F", 5, 100), "F: record 4 at byte 100");
}

// The checksum, computed bit by bit.
TEST(TfrecordTest, ChecksumsAreMaskedCrc32c) {
  const auto slow = [](absl::string_view bytes) {
    uint32_t crc = 0xFFFFFFFF;
    for (const char c : bytes) {
      crc ^= static_cast<uint8_t>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1)));
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
  };
  const std::string frame = TfrecordFrame("hello");
  const auto at = [&](size_t offset) {
    uint32_t value;
    std::memcpy(&value, frame.data() + offset, 4);
    return value;
  };
  ASSERT_EQ(frame.size(), 21u);
  EXPECT_EQ(at(0), 5u);
  EXPECT_EQ(at(8), slow(absl::string_view(frame).substr(0, 8)));
  EXPECT_EQ(frame.substr(12, 5), "hello");
  EXPECT_EQ(at(17), slow("hello"));
}

}  // namespace
}  // namespace mu
