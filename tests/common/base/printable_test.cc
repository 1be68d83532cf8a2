#include "common/base/printable.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(PrintableTest, ControlCharactersAreEscaped) {
  using namespace std::string_literals;
  EXPECT_EQ(Printable("\0\x01\x1b[2J\x1b"
                      "c\x7f\b"s),
            "\\x00\\x01\\x1b[2J\\x1bc\\x7f\\x08");
  EXPECT_EQ(Printable("a\nb\r\n"), "a\\nb\\r\\n");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "1m \xc2\x80\xc2\x9f"),
            "\\u009b1m \\u0080\\u009f");
}

TEST(PrintableTest, OtherTextStays) {
  EXPECT_EQ(Printable("a\tb \\n ~ \xc3\xa9 \xc2\xa0 \xe2\x82\xac"),
            "a\tb \\n ~ \xc3\xa9 \xc2\xa0 \xe2\x82\xac");
  EXPECT_EQ(Printable("\xff"
                      "a\xc2"),
            "?a?");
  EXPECT_EQ(Printable(""), "");
}

TEST(PrintableTest, LinesStayWhereAsked) {
  EXPECT_EQ(PrintableLines("a\n\x1b[1mb\r\n"), "a\n\\x1b[1mb\\r\n");
}

}  // namespace
}  // namespace mu
