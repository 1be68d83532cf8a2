#include "coordinator/cli/stats_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/printable.h"
#include "common/base/text.h"

namespace mu {
namespace {

std::string Number(const ColumnSummary& column, double value) {
  return column.numbers == 0 ? "-" : absl::StrFormat("%.6g", value);
}

}  // namespace

std::string StatsTable(const ScannedData& scanned, const std::vector<ColumnSummary>& columns) {
  size_t width = 6;
  for (const ColumnSummary& column : columns) width = std::max(width, column.name.size());
  std::string table =
      absl::StrFormat("%-*s %12s %10s %14s %14s %14s %14s %12s\n", width, "column", "count",
                      "missing", "mean", "stddev", "min", "max", "distinct");
  for (const ColumnSummary& column : columns) {
    absl::StrAppendFormat(&table, "%-*s %12d %10d %14s %14s %14s %14s %12s\n", width,
                          Printable(column.name), column.count, column.missing,
                          Number(column, column.mean), Number(column, column.stddev),
                          Number(column, column.min), Number(column, column.max),
                          absl::StrCat(column.distinct_exact ? "" : "~", column.distinct));
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
