// A run's facts as JSON and as a few lines for a person. docs/report.md documents each key.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "coordinator/training/train_job.h"

namespace mu {

inline constexpr char kReportName[] = "report.json";  // in the run's directory

// Pretty-printed, ending in a newline. Numbers that are not finite become null.
std::string ReportToJson(const RunReport& report);

// What came out, for the end of a run on a terminal.
std::string SummaryOf(const RunReport& report);

// Writes the report to `path`, making its folder.
absl::Status WriteReport(const RunReport& report, const std::string& path);

// 1234567.8 as "1,234,568".
std::string WithCommas(double number);

}  // namespace mu
