#include "common/records/first_records.h"

#include <limits>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/base/text.h"
#include "common/graph/dataset_schema.h"
#include "common/records/file_records.h"
#include "common/records/record_selection.h"

namespace mu {
namespace {

constexpr size_t kShownBadRecords = 3;

// The lines of bad records among the first ones, and what is to be said of them.
struct BadRecords {
  std::vector<std::string> shown;
  uint64_t count = 0;
  uint64_t good = 0;
};

void ReportBadRecords(const pb::DatasetProto& dataset, const std::string& path, uint64_t most,
                      BadRecords bad, FirstRecords* result) {
  if (bad.count == 0) return;
  if (dataset.on_bad_record() == pb::ON_BAD_RECORD_SKIP) {
    if (bad.good > 0 || result->records < most) return;
    result->problems.push_back(
        absl::StrCat(path, ": none of its first ", bad.count,
                     " records is good; is this the right format? The first: ", bad.shown.front()));
    return;
  }
  for (std::string& shown : bad.shown) {
    result->problems.push_back(
        absl::StrCat(shown, "; mend the file, or leave such records out with on_bad_record: skip"));
  }
  if (bad.count > bad.shown.size()) {
    result->problems.push_back(absl::StrCat(path, ": ", bad.count - bad.shown.size(),
                                            " more of its first ", result->records,
                                            " records are bad"));
  }
}

absl::Status Read(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                  uint64_t most, bool until_positive, FirstRecords* result) {
  MU_ASSIGN_OR_RETURN(const std::shared_ptr<const RecordFormat> format, MakeRecordFormat(dataset));
  FileRecords records(format);
  MU_RETURN_IF_ERROR(records.Open(paths, &result->problems));
  if (!result->problems.empty()) return absl::OkStatus();
  const RecordSelection selection(dataset.records());
  ColumnSet columns(SchemaOf(dataset), /*capacity=*/1);
  LabelTexts labels(dataset);
  columns.set_observer(&labels);
  BadRecords bad;
  absl::Status broken;
  for (; result->records < most; ++result->records) {
    if (until_positive && labels.AllHavePositives()) break;
    const bool keep = selection.Keeps(result->records);
    const absl::StatusOr<FileRecords::Next> next = records.ParseNext(keep, &columns);
    broken = next.status();
    if (!next.ok() || *next == FileRecords::Next::kEnd) break;
    if (!keep) continue;
    if (*next == FileRecords::Next::kGood) {
      ++bad.good;
    } else if (bad.count++ < kShownBadRecords) {
      bad.shown.push_back(records.problem());
    }
    columns.DropRow();
  }
  result->labels = labels.found();
  ReportBadRecords(dataset, paths[0], most, std::move(bad), result);
  return broken;
}

FirstRecords ReadFile(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                      uint64_t most, bool until_positive) {
  FirstRecords result;
  const absl::Status status = Read(dataset, paths, most, until_positive, &result);
  if (!status.ok()) result.problems.emplace_back(status.message());
  // Files may hold any bytes, messages may not.
  for (std::string& problem : result.problems) problem = ValidUtf8(problem);
  return result;
}

}  // namespace

FirstRecords ReadFirstRecords(const pb::DatasetProto& dataset, absl::Span<const std::string> paths,
                              uint64_t most) {
  return ReadFile(dataset, paths, most, /*until_positive=*/false);
}

FirstRecords ReadUntilPositive(const pb::DatasetProto& dataset,
                               absl::Span<const std::string> paths) {
  return ReadFile(dataset, paths, std::numeric_limits<uint64_t>::max(), /*until_positive=*/true);
}

}  // namespace mu
