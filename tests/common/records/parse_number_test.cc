#include "common/records/parse_number.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"

namespace mu {
namespace {

TEST(ParseNumberTest, IsTheNearestFloat) {
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
    const bool good = end != text.c_str() && *end == 0;
    ASSERT_EQ(ParseNumber(text, &value), good) << text;
    if (good) {
      ASSERT_EQ(value, expected) << text;
    }
  }
}

TEST(ParseNumberTest, RefusesEverythingElse) {
  float value;
  for (const char* text : {"", "-", "+", ".", "x", "1x", "1 ", " 1", "nan", "inf", "-inf", "0x10",
                           "1e", "--1", "+-1", "1e99", "1,5", "1.2.3"}) {
    EXPECT_FALSE(ParseNumber(text, &value)) << text;
  }
  EXPECT_TRUE(ParseNumber("1e-60", &value));
  EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace mu
