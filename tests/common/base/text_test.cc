#include "common/base/text.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(ValidUtf8Test, GoodTextStays) {
  EXPECT_EQ(ValidUtf8(""), "");
  EXPECT_EQ(ValidUtf8("plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"),
            "plain \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
  EXPECT_EQ(ValidUtf8(std::string("a\0b", 3)), std::string("a\0b", 3));
}

TEST(ValidUtf8Test, EveryBadByteBecomesAQuestionMark) {
  EXPECT_EQ(ValidUtf8("caf\xE9,3"), "caf?,3");
  EXPECT_EQ(ValidUtf8("\xC3"), "?");                 // cut off
  EXPECT_EQ(ValidUtf8("\xC0\x80"), "??");            // overlong
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "???");       // a surrogate
  EXPECT_EQ(ValidUtf8("\xF4\x90\x80\x80"), "????");  // above the last code point
  EXPECT_EQ(ValidUtf8("\xFF\xFE"), "??");
}

}  // namespace
}  // namespace mu
