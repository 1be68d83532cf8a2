// What `coordinator stats` prints.
#pragma once

#include <string>
#include <vector>

#include "common/records/column_stats.h"
#include "common/records/data_scan.h"

namespace mu {

std::string StatsTable(const ScannedData& scanned, const std::vector<ColumnSummary>& columns);
// {"records": N, "bad_records": N, "files": N, "columns": {NAME: {"count", "missing", "numbers",
// "mean", "stddev", "min", "max", "distinct", "distinct_is_exact"}}}; mean to max are null without
// numbers.
std::string StatsJson(const ScannedData& scanned, const std::vector<ColumnSummary>& columns);

}  // namespace mu
