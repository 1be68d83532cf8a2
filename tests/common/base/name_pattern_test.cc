#include "common/base/name_pattern.h"

#include <gtest/gtest.h>

namespace mu {
namespace {

TEST(NamePattern, Matches) {
  EXPECT_TRUE(MatchesPattern("deep/w0", "deep/w0"));
  EXPECT_TRUE(MatchesPattern("deep/w0", "deep/*"));
  EXPECT_TRUE(MatchesPattern("deep/w0", "*"));
  EXPECT_TRUE(MatchesPattern("deep/w0", "*/w*"));
  EXPECT_TRUE(MatchesPattern("deep/w0", "**0"));
  EXPECT_TRUE(MatchesPattern("abab", "*ab"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_TRUE(MatchesPattern("", ""));
  EXPECT_FALSE(MatchesPattern("deep/w0", "deep/"));
  EXPECT_FALSE(MatchesPattern("deep/w0", "deep/w0*x"));
  EXPECT_FALSE(MatchesPattern("deep/w0", ""));
  EXPECT_FALSE(MatchesPattern("deep", "*/*"));
  EXPECT_FALSE(MatchesPattern("a.b", "a?b"));
}

TEST(NamePattern, Renames) {
  EXPECT_EQ(Renamed("user", "user", "member"), "member");
  EXPECT_EQ(Renamed("users", "user", "member"), std::nullopt);
  EXPECT_EQ(Renamed("old/w/0", "old/*", "new/*"), "new/w/0");
  EXPECT_EQ(Renamed("old/w", "*/w", "*/v"), "old/v");
  EXPECT_EQ(Renamed("old/", "old/*", "x*y"), "xy");
  EXPECT_EQ(Renamed("old/w", "old/*", "one"), "one");
  EXPECT_EQ(Renamed("w", "*", "part/*"), "part/w");
  // The text before and the text after may not share characters.
  EXPECT_EQ(Renamed("aba", "ab*ba", "*"), std::nullopt);
}

}  // namespace
}  // namespace mu
