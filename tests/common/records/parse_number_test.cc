#include "common/records/parse_number.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu {
namespace {

TEST(ParseNumberTest, IsTheNearestFloatOrDouble) {
  SplitMix random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    if (random.Below(4) == 0) text += random.Below(2) == 0 ? "-" : "+";
    for (uint64_t n = random.Below(7); n > 0; --n)
      text += static_cast<char>('0' + random.Below(10));
    if (random.Below(2) == 0) {
      text += '.';
      for (uint64_t n = random.Below(9); n > 0; --n)
        text += static_cast<char>('0' + random.Below(10));
    }
    if (random.Below(5) == 0)
      absl::StrAppend(&text, "e", static_cast<int64_t>(random.Below(60)) - 30);
    char* end = nullptr;
    const float expected = std::strtof(text.c_str(), &end);
    float value = -1;
    double wide = -1;
    const bool good = end != text.c_str() && *end == 0;
    ASSERT_EQ(ParseNumber(text, &value), good) << text;
    ASSERT_EQ(ParseNumber(text, &wide), good) << text;
    if (good) {
      ASSERT_EQ(value, expected) << text;
      ASSERT_EQ(wide, std::strtod(text.c_str(), nullptr)) << text;
    }
  }
}

TEST(ParseNumberTest, RefusesEverythingElse) {
  float value;
  double wide;
  for (const char* text : {"", "-", "+", ".", "x", "1x", "1 ", " 1", "nan", "inf", "-inf", "0x10",
                           "1e", "--1", "+-1", "1e99", "1,5", "1.2.3"}) {
    EXPECT_FALSE(ParseNumber(text, &value)) << text;
    EXPECT_FALSE(ParseNumber(text, &wide)) << text;
  }
}

TEST(ParseNumberTest, WhatIsTooSmallIsZero) {
  float value = 1;
  double wide = 1;
  for (const char* text : {"1e-400", "-1e-400"}) {
    value = wide = 1;
    EXPECT_TRUE(ParseNumber(text, &value)) << text;
    EXPECT_TRUE(ParseNumber(text, &wide)) << text;
    EXPECT_EQ(value, 0.0f) << text;
    EXPECT_EQ(wide, 0.0) << text;
  }
  EXPECT_TRUE(ParseNumber("1e-60", &value));
  EXPECT_TRUE(ParseNumber("1e-60", &wide));
  EXPECT_EQ(value, 0.0f);
  EXPECT_EQ(wide, 1e-60);
}

// A text is a number for both or for neither.
TEST(ParseNumberTest, WhatIsTooLargeForAFloatIsRefused) {
  float value = 0;
  double wide = 0;
  for (const char* text : {"1e39", "-1e39", "1e400", "3.40282357e38", "-3.40282357e38"}) {
    EXPECT_FALSE(ParseNumber(text, &value)) << text;
    EXPECT_FALSE(ParseNumber(text, &wide)) << text;
  }
  // How the largest float is written: above it, but it rounds to it.
  EXPECT_TRUE(ParseNumber("3.4028235e38", &value));
  EXPECT_TRUE(ParseNumber("3.4028235e38", &wide));
  EXPECT_EQ(value, std::numeric_limits<float>::max());
  EXPECT_EQ(wide, 3.4028235e38);
}

TEST(ParseNumberTest, DoublesHoldWhatFloatsDoNot) {
  double wide = 0;
  EXPECT_TRUE(ParseNumber("16777217", &wide));
  EXPECT_EQ(wide, 16777217.0);
  EXPECT_TRUE(ParseNumber("-1700000049.5", &wide));
  EXPECT_EQ(wide, -1700000049.5);
}

}  // namespace
}  // namespace mu
