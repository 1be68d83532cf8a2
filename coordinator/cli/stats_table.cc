#include "coordinator/cli/stats_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/number_text.h"
#include "common/base/printable.h"
#include "common/base/text.h"

namespace mu {
namespace {

// To a millionth of the standard deviation: with the mean and the deviation that are copied into a
// job file, numbers are standardised as with all digits of both.
std::string Number(const ColumnSummary& column, double value) {
  return column.numbers == 0 ? "-" : NumberText(value, 1e-6 * column.stddev);
}

}  // namespace

std::string StatsTable(const ScannedData& scanned, const std::vector<ColumnSummary>& columns) {
  std::vector<std::vector<std::string>> lines = {
      {"column", "count", "missing", "mean", "stddev", "min", "max", "distinct"}};
  for (const ColumnSummary& column : columns) {
    lines.push_back({Printable(column.name), absl::StrCat(column.count),
                     absl::StrCat(column.missing), Number(column, column.mean),
                     Number(column, column.stddev), Number(column, column.min),
                     Number(column, column.max),
                     absl::StrCat(column.distinct_exact ? "" : "~", column.distinct)});
  }
  std::vector<size_t> widths = {6, 12, 10, 14, 14, 14, 14, 12};
  for (const std::vector<std::string>& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string table;
  for (const std::vector<std::string>& line : lines) {
    absl::StrAppendFormat(&table, "%-*s", static_cast<int>(widths[0]), line[0]);
    for (size_t i = 1; i < line.size(); ++i)
      absl::StrAppendFormat(&table, " %*s", static_cast<int>(widths[i]), line[i]);
    table += "\n";
  }
  absl::StrAppend(&table, scanned.records, " records of ", scanned.files, " files");
  if (scanned.bad > 0)
    absl::StrAppend(&table, "; ", scanned.bad,
                    " bad ones left out, the first: ", scanned.first_bad);
  return table + "\n";
}

std::string StatsJson(const ScannedData& scanned, const std::vector<ColumnSummary>& columns) {
  nlohmann::json json = {{"records", scanned.records},
                         {"bad_records", scanned.bad},
                         {"files", scanned.files},
                         {"columns", nlohmann::json::object()}};
  for (const ColumnSummary& column : columns) {
    const auto number = [&](double value) {
      return column.numbers == 0 ? nlohmann::json() : nlohmann::json(value);
    };
    json["columns"][ValidUtf8(column.name)] = {{"count", column.count},
                                               {"missing", column.missing},
                                               {"numbers", column.numbers},
                                               {"mean", number(column.mean)},
                                               {"stddev", number(column.stddev)},
                                               {"min", number(column.min)},
                                               {"max", number(column.max)},
                                               {"distinct", column.distinct},
                                               {"distinct_is_exact", column.distinct_exact}};
  }
  return json.dump(2) + "\n";
}

}  // namespace mu
