#include "common/records/jsonl_parser.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "tests/common/records/parsed.h"

namespace mu {
namespace {

using ::mu::testing::Parsed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Columns a, b: hashes, so that the text shows.
pb::DatasetProto Texts() {
  pb::DatasetProto dataset;
  for (const char* name : {"a", "b"}) {
    pb::CsvColumnProto* column = dataset.mutable_jsonl()->add_columns();
    column->set_name(name);
    column->set_kind(pb::CsvColumnProto::HASH);
    column->set_buckets(int64_t{1} << 40);
    column->set_seed(1);
  }
  return dataset;
}

int64_t Bucket(absl::string_view text) { return BucketHash(1, uint64_t{1} << 40).OfText(text); }

TEST(JsonlParserTest, FindsKeysAmongOthers) {
  Parsed parsed(Texts());
  for (const char* record :
       {R"({"b":"two","a":"one"})", R"(  {  "z" : {"a":[1,{"b":"}"}],"":null} , "a" :"one",
          "y":-1.5e+3, "b"	:	"two" }  )",
        R"({"\u0061":"o\u006Ee","x":["a","\"]"],"b":"two"})"}) {
    EXPECT_EQ(parsed.Add(record), "") << record;
  }
  EXPECT_THAT(parsed.Values<int64_t>("a"),
              ElementsAre(Bucket("one"), Bucket("one"), Bucket("one")));
  EXPECT_THAT(parsed.Values<int64_t>("b"),
              ElementsAre(Bucket("two"), Bucket("two"), Bucket("two")));
}

TEST(JsonlParserTest, TextsOfValues) {
  Parsed parsed(Texts());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"12", "12"},
      {"-0.50", "-0.50"},
      {"1E5", "1E5"},
      {"true", "true"},
      {"false", "false"},
      {R"("\"\\\/\b\f\n\r\t")", "\"\\/\b\f\n\r\t"},
      {R"("\u00e9\u20AC")", "é€"},
      {R"("\ud83d\ude00!")", "😀!"},
      {R"("é€😀")", "é€😀"},
      {R"("0123456789abcdef\n0123456789abcdef")", "0123456789abcdef\n0123456789abcdef"}};
  std::vector<int64_t> expected;
  for (const auto& [written, text] : cases) {
    EXPECT_EQ(parsed.Add(absl::StrCat("{\"a\":", written, "}")), "") << written;
    expected.push_back(Bucket(text));
  }
  EXPECT_EQ(parsed.Values<int64_t>("a"), expected);
}

TEST(JsonlParserTest, SaysWhereItIsNoJson) {
  Parsed parsed(Texts());
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "at character 1 a { is expected, not \"[\""},
      {"{", "at character 2 a key is expected, not the end of the line"},
      {"{\"a\"}", "a colon is expected, not \"}\""},
      {"{\"a\":}", "a value is expected"},
      {"{\"a\":1", "a comma or } is expected, not the end"},
      {"{\"a\":1,}", "a key is expected, not \"}\""},
      {"{\"a\":1}x", "nothing more is expected, not \"x\""},
      {"{\"a\":1}{}", "nothing more"},
      {"{\"a\":01}", "a comma or }"},
      {"{\"a\":-}", "a digit is expected"},
      {"{\"a\":1.}", "a digit is expected"},
      {"{\"a\":1e}", "a digit is expected"},
      {"{\"a\":+1}", "a value is expected"},
      {"{\"a\":nul}", "a value is expected"},
      {"{\"a\":NaN}", "a value is expected"},
      {"{\"a\":\"x}", "a quote that ends the string"},
      {"{\"a\":\"x\\", "an escaped character"},
      {"{\"a\":\"\x01\"}", "an escape instead of a control character"},
      {"{\"z\":[1 2]}", "a comma or ]"},
      {"{\"z\":[1,]}", "a value is expected, not \"]\""},
      {"{a:1}", "a key is expected"},
      {"{\"z\":" + std::string(70, '[') + std::string(70, ']') + "}", "less nesting"},
      {R"({"a":"\x"})", "an escaped character is expected, not \"x\""},
      {R"({"z":"\x"})", "an escaped character"},
      {R"({"a":"\ud800"})", "bad escape"},
      {R"({"a":"\ude00"})", "bad escape"},
      {R"({"a":"\u12"})", "an escaped character is expected, not \"u\""},
      {R"({"\ud800":1})", "the key \"\\ud800\" has a bad escape"},
      {R"({"a":1,"a":2})", "the key \"a\" stands there twice"},
      {R"({"a":[1]})", "write list: true"},
      {R"({"a":{}})", "is an object"}};
  for (const auto& [record, what] : cases)
    EXPECT_THAT(parsed.Add(record), HasSubstr(what)) << record;
}

// Random JSON as another library writes and reads it.
class RandomJson {
 public:
  RandomJson(uint64_t seed, bool ascii) : random_(seed), ascii_(ascii) {}
  nlohmann::json Value(int depth) {
    switch (random_.Below(depth > 3 ? 5 : 7)) {
      case 0:
        return nullptr;
      case 1:
        return random_.Below(2) == 0;
      case 2:
        return static_cast<int64_t>(random_.Next());
      case 3:
        return random_.Unit() * 1e6 - 5e5;
      case 4:
        return Text();
      case 5: {
        nlohmann::json array = nlohmann::json::array();
        for (uint64_t i = random_.Below(4); i > 0; --i) array.push_back(Value(depth + 1));
        return array;
      }
      default: {
        nlohmann::json object = nlohmann::json::object();
        for (uint64_t i = random_.Below(4); i > 0; --i) object[Text()] = Value(depth + 1);
        return object;
      }
    }
  }
  std::string Text() {
    static const char* const kPieces[] = {"a", "b", "\"", "\\", "\n", "/", "\x1F", " ", "é", "😀"};
    std::string text;
    for (uint64_t i = random_.Below(30); i > 0; --i)
      text += kPieces[random_.Below(ascii_ ? 8 : 10)];
    return text;
  }
  // With keys "a" and others.
  nlohmann::json Record(const std::string& a) {
    nlohmann::json record = nlohmann::json::object();
    for (uint64_t i = random_.Below(6); i > 0; --i) record[Text() + "!"] = Value(0);
    record["a"] = a;
    return record;
  }
  SplitMix& random() { return random_; }

 private:
  SplitMix random_;
  const bool ascii_;
};

TEST(JsonlParserTest, AgreesWithAnotherLibrary) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RandomJson make(seed, /*ascii=*/false);
    const std::string text = make.Text() + "x";
    const std::string line = make.Record(text).dump(seed % 3 == 0 ? 1 : -1, ' ', seed % 2 == 0);
    Parsed parsed(Texts());
    ASSERT_EQ(parsed.Add(line), "") << line;
    EXPECT_THAT(parsed.Values<int64_t>("a"), ElementsAre(Bucket(text))) << line;
  }
}

// Of a record that is damaged at one place both say the same.
TEST(JsonlParserTest, AgreesWithAnotherLibraryAboutDamage) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    RandomJson make(seed, /*ascii=*/true);
    std::string line = make.Record("x").dump();
    line[make.random().Below(line.size())] = "{}[],:\"\\x0 "[make.random().Below(11)];
    const auto again = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    Parsed parsed(Texts());
    const std::string problem = parsed.Add(line);
    if (again.is_discarded() || !again.is_object()) {
      EXPECT_NE(problem, "") << line;
      ++refused;
    } else if (!again.contains("a") || again["a"] == "x") {
      EXPECT_EQ(problem, "") << line;
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace mu
