#include "common/records/record_scanner.h"

#include <gmock/gmock.h>

#include "common/records/sparse_text.h"
#include "tests/common/records/found_records.h"

namespace mu {
namespace {

using ::mu::testing::Found;
using ::mu::testing::kCsv;
using ::mu::testing::kLines;
using ::mu::testing::kTrimmed;
using ::mu::testing::Records;
using ::testing::ElementsAre;

TEST(RecordScannerTest, LinesAreRecordsAndBlankOnesAreNot) {
  EXPECT_THAT(Records(kLines, "a\tb\nc\n\n\r\nd"),
              ElementsAre(Found{"a\tb", 1}, Found{"c", 2}, Found{"d", 5}));
  EXPECT_THAT(Records(kLines, "a\r\nb\r\n"), ElementsAre(Found{"a", 1}, Found{"b", 2}));
  EXPECT_THAT(Records(kLines, ""), ElementsAre());
  EXPECT_THAT(Records(kLines, "\n\n"), ElementsAre());
  EXPECT_THAT(Records(kLines, "\"a\nb\""), ElementsAre(Found{"\"a", 1}, Found{"b\"", 2}));
}

TEST(RecordScannerTest, LinesOfACommentAloneAreNoRecords) {
  EXPECT_THAT(Records(kSparseSyntax, "# a\n#\r\n1 2:1 # b\n \t# 1 2:1\n\n  0 2:1#\r\n# end"),
              ElementsAre(Found{"1 2:1 # b", 3}, Found{"  0 2:1#", 6}));
  EXPECT_THAT(Records(kSparseSyntax, " \n1\n\t \r\n0\n  "),
              ElementsAre(Found{"1", 2}, Found{"0", 4}));
  EXPECT_THAT(Records(kSparseSyntax, "# a\n \t# b"), ElementsAre());
  EXPECT_THAT(Records(kSparseSyntax, "# a"), ElementsAre());
  EXPECT_THAT(Records(kSparseSyntax, "# a\r\n"), ElementsAre());
  EXPECT_THAT(Records(kSparseSyntax, " "), ElementsAre());
  // Of formats that have no comments.
  EXPECT_THAT(Records(kLines, "# a\n \n"), ElementsAre(Found{"# a", 1}, Found{" ", 2}));
  EXPECT_THAT(Records(kCsv, "#,a\n"), ElementsAre(Found{"#,a", 1}));
}

// A comment that may go on is no record yet, and is not looked at again once it has ended.
TEST(RecordScannerTest, CommentsAreSkippedAsSoonAsTheyEnd) {
  const std::string text = "# a\n# b";
  FoundRecord found;
  EXPECT_EQ(FindRecord(kSparseSyntax, text.data(), text.data() + text.size(), false, 5, &found),
            FindResult::kMore);
  EXPECT_EQ(found.next, text.data() + 4);
  EXPECT_EQ(found.next_line, 6u);
}

TEST(RecordScannerTest, QuotedFieldsHoldLineEnds) {
  EXPECT_THAT(Records(kCsv, "1,\"a\nb\",2\n3,\"c\"\n"),
              ElementsAre(Found{"1,\"a\nb\",2", 1}, Found{"3,\"c\"", 3}));
  EXPECT_THAT(Records(kCsv, "\"a\"\"\n\"\"b\"\nc"),
              ElementsAre(Found{"\"a\"\"\n\"\"b\"", 1}, Found{"c", 3}));
  EXPECT_THAT(Records(kCsv, "\"\r\n\"\r\nx"), ElementsAre(Found{"\"\r\n\"", 1}, Found{"x", 3}));
  EXPECT_THAT(Records(kTrimmed, "1,  \"a\nb\"\nc"),
              ElementsAre(Found{"1,  \"a\nb\"", 1}, Found{"c", 3}));
}

TEST(RecordScannerTest, QuotesElsewhereAreOrdinary) {
  EXPECT_THAT(Records(kCsv, "a\"b\nc"), ElementsAre(Found{"a\"b", 1}, Found{"c", 2}));
  EXPECT_THAT(Records(kCsv, "1, \"a\nb"), ElementsAre(Found{"1, \"a", 1}, Found{"b", 2}));
}

TEST(RecordScannerTest, AnOpenQuoteEndsWithItsLine) {
  EXPECT_THAT(Records(kCsv, "1,\"a\nb\nc\n"),
              ElementsAre(Found{"1,\"a", 1}, Found{"b", 2}, Found{"c", 3}));
  const std::string far(kMaxQuotedRecord, '\n');
  EXPECT_EQ(Records(kCsv, "1,\"a" + far + "\"\n")[0].text, "1,\"a");
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
