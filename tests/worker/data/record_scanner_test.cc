#include "worker/data/record_scanner.h"

#include <string>
#include <vector>

#include "common/base/hash.h"
#include "tests/testing/matchers.h"
#include "worker/data/file_index.h"

namespace mu {
namespace {

using ::mu::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr RecordSyntax kLines = {};
constexpr RecordSyntax kCsv = {.delimiter = ',', .quote = '"'};
constexpr RecordSyntax kTrimmed = {.delimiter = ',', .quote = '"', .trim = true};

struct Found {
  std::string text;
  uint64_t line;
  friend bool operator==(const Found& a, const Found& b) { return a.text == b.text && a.line == b.line; }
  friend std::ostream& operator<<(std::ostream& out, const Found& f) { return out << f.line << ":" << f.text; }
};

std::vector<Found> Records(const RecordSyntax& syntax, const std::string& text) {
  std::vector<Found> all;
  const char* p = text.data();
  uint64_t line = 1;
  FoundRecord found;
  while (FindRecord(syntax, p, text.data() + text.size(), true, line, &found) == FindResult::kFound) {
    all.push_back({std::string(found.text), found.line});
    p = found.next;
    line = found.next_line;
  }
  EXPECT_EQ(found.next, text.data() + text.size());
  return all;
}

TEST(RecordScannerTest, LinesAreRecordsAndBlankOnesAreNot) {
  EXPECT_THAT(Records(kLines, "a\tb\nc\n\n\r\nd"), ElementsAre(Found{"a\tb", 1}, Found{"c", 2}, Found{"d", 5}));
  EXPECT_THAT(Records(kLines, "a\r\nb\r\n"), ElementsAre(Found{"a", 1}, Found{"b", 2}));
  EXPECT_THAT(Records(kLines, ""), ElementsAre());
  EXPECT_THAT(Records(kLines, "\n\n"), ElementsAre());
  EXPECT_THAT(Records(kLines, "\"a\nb\""), ElementsAre(Found{"\"a", 1}, Found{"b\"", 2}));
}

TEST(RecordScannerTest, QuotedFieldsHoldLineEnds) {
  EXPECT_THAT(Records(kCsv, "1,\"a\nb\",2\n3,\"c\"\n"), ElementsAre(Found{"1,\"a\nb\",2", 1}, Found{"3,\"c\"", 3}));
  EXPECT_THAT(Records(kCsv, "\"a\"\"\n\"\"b\"\nc"), ElementsAre(Found{"\"a\"\"\n\"\"b\"", 1}, Found{"c", 3}));
  EXPECT_THAT(Records(kCsv, "\"\r\n\"\r\nx"), ElementsAre(Found{"\"\r\n\"", 1}, Found{"x", 3}));
  EXPECT_THAT(Records(kTrimmed, "1,  \"a\nb\"\nc"), ElementsAre(Found{"1,  \"a\nb\"", 1}, Found{"c", 3}));
}

TEST(RecordScannerTest, QuotesElsewhereAreOrdinary) {
  EXPECT_THAT(Records(kCsv, "a\"b\nc"), ElementsAre(Found{"a\"b", 1}, Found{"c", 2}));
  EXPECT_THAT(Records(kCsv, "1, \"a\nb"), ElementsAre(Found{"1, \"a", 1}, Found{"b", 2}));
}

TEST(RecordScannerTest, AnOpenQuoteEndsWithItsLine) {
  EXPECT_THAT(Records(kCsv, "1,\"a\nb\nc\n"), ElementsAre(Found{"1,\"a", 1}, Found{"b", 2}, Found{"c", 3}));
  const std::string far(kMaxQuotedRecord, '\n');
  EXPECT_EQ(Records(kCsv, "1,\"a" + far + "\"\n")[0].text, "1,\"a");
}

// However the bytes are cut into chunks, and wherever reading begins, the same records are found.
TEST(RecordScannerTest, ChunksAndBlocksDoNotMatter) {
  constexpr absl::string_view kPieces[] = {"a", ",", "\"", "\n", "\r\n", "\"\"", "bc", " ", "\",\"", "\n\n"};
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    SplitMix random(seed);
    std::string text;
    for (uint64_t i = random.Below(60); i > 0; --i) text += std::string(kPieces[random.Below(10)]);
    const RecordSyntax syntax = seed % 2 == 0 ? kCsv : kTrimmed;
    const std::vector<Found> expected = Records(syntax, text);
    const uint32_t spacing = 1 + static_cast<uint32_t>(random.Below(3));
    FileIndexer indexer("F", syntax, spacing);
    for (size_t begin = 0; begin < text.size();) {
      const size_t size = std::min<size_t>(text.size() - begin, 1 + random.Below(9));
      MU_ASSERT_OK(indexer.Write(absl::string_view(text).substr(begin, size)));
      begin += size;
    }
    MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, indexer.Finish());
    ASSERT_EQ(index.records, expected.size());
    ASSERT_EQ(index.bytes, text.size());
    for (uint64_t first = 0; first < index.records; ++first) {
      for (uint64_t count = 1; first + count <= index.records; ++count) {
        const FileIndex::Range range = index.Locate(first, count);
        const std::vector<Found> part = Records(syntax, text.substr(range.offset, range.size));
        ASSERT_GE(part.size(), range.skip + count);
        for (uint64_t i = 0; i < count; ++i) {
          const Found& found = part[range.skip + i];
          ASSERT_EQ(found.text, expected[first + i].text);
          ASSERT_EQ(found.line + range.line - 1, expected[first + i].line);
        }
      }
    }
  }
}

TEST(FileIndexTest, SkipsAByteOrderMarkAndKeepsTheHeader) {
  const std::string text = "\xEF\xBB\xBF" "a,b\n1,2\n3,4";
  for (size_t step : {1, 2, 100}) {
    FileIndexer indexer("F", {.delimiter = ',', .quote = '"', .header = true}, 1);
    for (size_t begin = 0; begin < text.size(); begin += step) {
      MU_ASSERT_OK(indexer.Write(absl::string_view(text).substr(begin, step)));
    }
    MU_ASSERT_OK_AND_ASSIGN(const FileIndex index, indexer.Finish());
    EXPECT_EQ(index.header, "a,b");
    EXPECT_EQ(index.records, 2u);
    EXPECT_EQ(index.marks[0].offset, 7u);
    EXPECT_EQ(index.marks[0].line, 2u);
  }
}

TEST(FileIndexTest, RefusesWhatIsNoText) {
  FileIndexer indexer("DIR/F", kLines, 1);
  MU_ASSERT_OK(indexer.Write("a\n"));
  EXPECT_THAT(indexer.Write(std::string(kMaxLine + 1, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("DIR/F:2: ")));
}

TEST(FileIndexTest, NeedsAHeader) {
  FileIndexer indexer("F", {.header = true}, 1);
  EXPECT_THAT(indexer.Finish().status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("F:1: ")));
}

TEST(FindFieldTest, UnderstandsQuotesAndSpaces) {
  const auto fields = [](const RecordSyntax& syntax, const std::string& text) {
    std::vector<std::string> all;
    const char* p = text.data();
    while (p != nullptr) {
      const FieldBounds field = FindField(syntax, p, text.data() + text.size());
      all.push_back((field.malformed ? "!" : "") + std::string(field.text));
      p = field.next;
    }
    return all;
  };
  EXPECT_THAT(fields(kCsv, "a,,b,"), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(fields(kCsv, "\"a,b\", c ,\"\""), ElementsAre("a,b", " c ", ""));
  EXPECT_THAT(fields(kCsv, "\"a\"x,b"), ElementsAre("!a", "b"));
  EXPECT_THAT(fields(kCsv, "\"a"), ElementsAre("!"));
  EXPECT_THAT(fields(kTrimmed, " a , \"b \" ,\tc d\t"), ElementsAre("a", "b ", "c d"));
  EXPECT_THAT(fields({.delimiter = '\t', .trim = true}, " a\t\t b"), ElementsAre("a", "", "b"));
}

}  // namespace
}  // namespace mu
