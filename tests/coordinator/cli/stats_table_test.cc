#include "coordinator/cli/stats_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace mu {
namespace {

using ::testing::HasSubstr;

// The columns of `coordinator stats`: times, and numbers with many digits.
std::vector<ColumnSummary> SomeColumns() {
  ColumnStats times("ts"), numbers("n"), names("name");
  for (int64_t i = 0; i < 100; ++i) times.AddText(absl::StrCat(1'700'000'000 + i));
  for (const double number : {-1234567.125, 2.0 / 3}) numbers.AddNumber(number);
  names.AddText("a");
  return {times.Summary(), numbers.Summary(), names.Summary()};
}

TEST(StatsTableTest, HasTheDigitsThatTellValuesApart) {
  const std::string table = StatsTable({}, SomeColumns());
  for (const char* text : {" 1700000049.5 ", " 28.86607 ", " 1700000000 ", " 1700000099 "})
    EXPECT_THAT(table, HasSubstr(text));
  // No more than its deviation asks for.
  EXPECT_THAT(table, HasSubstr(" 0.666667 "));
}

TEST(StatsTableTest, ColumnsAreAligned) {
  std::vector<ColumnSummary> columns = SomeColumns();
  columns[0].min = -(0.1 + 0.2);
  columns[0].stddev = 0;  // so in full
  columns[1].name = "a_name_that_is_longer_than_the_others\n";
  const std::vector<std::string> lines =
      absl::StrSplit(StatsTable({}, columns), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 5u);  // the last: records and files
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(lines[i].size(), lines[0].size()) << lines[i];
  EXPECT_THAT(lines[1], HasSubstr(" -0.30000000000000004 "));
}

TEST(StatsTableTest, JsonHasAllDigits) {
  ColumnStats ids("id");
  ids.AddText("16777217");
  const auto id = nlohmann::json::parse(StatsJson({}, {ids.Summary()}))["columns"]["id"];
  EXPECT_EQ(id["max"].get<double>(), 16777217.0);
  EXPECT_EQ(id["mean"].get<double>(), 16777217.0);
  const auto times = nlohmann::json::parse(StatsJson({}, SomeColumns()))["columns"]["ts"];
  EXPECT_EQ(times["min"].get<double>(), 1700000000.0);
  EXPECT_NEAR(times["mean"].get<double>(), 1700000049.5, 1e-4);
}

}  // namespace
}  // namespace mu
