#include "common/records/data_scan.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/records/dataset_files.h"
#include "common/records/file_records.h"
#include "common/records/foreign_text.h"
#include "common/records/record_selection.h"

namespace mu {
namespace {

absl::Status ScanFile(const pb::DatasetProto& dataset, FileRecords* records, ColumnSet* columns,
                      const std::function<void(bool good)>& parsed, ScannedData* scanned) {
  const RecordSelection selection(dataset.records());
  for (uint64_t index = 0;; ++index) {
    const bool keep = selection.Keeps(index);
    MU_ASSIGN_OR_RETURN(const FileRecords::Next next, records->ParseNext(keep, columns));
    if (next == FileRecords::Next::kEnd) return absl::OkStatus();
    if (!keep) continue;
    const bool good = next == FileRecords::Next::kGood;
    parsed(good);
    if (good) {
      ++scanned->records;
    } else if (dataset.on_bad_record() == pb::ON_BAD_RECORD_FAIL) {
      return absl::InvalidArgumentError(
          absl::StrCat(Printable(records->problem()),
                       "; mend the file, or leave such records out with on_bad_record: skip"));
    } else if (scanned->bad++ == 0) {
      scanned->first_bad = Printable(records->problem());
    }
  }
}

}  // namespace

absl::StatusOr<ScannedData> ScanData(const pb::DatasetProto& dataset, ColumnSet* columns,
                                     const std::function<void(bool good)>& parsed) {
  pb::DatasetProto expanded = dataset;
  MU_RETURN_IF_ERROR(ExpandDatasetFiles(&expanded));
  MU_ASSIGN_OR_RETURN(const std::shared_ptr<const RecordFormat> format, MakeRecordFormat(expanded));
  ScannedData scanned;
  for (int file = 0; file < expanded.files_size(); ++file) {
    MU_RETURN_IF_ERROR(CheckIsText(expanded, expanded.files(file)));
    FileRecords records(format);
    std::vector<std::string> problems;
    MU_RETURN_IF_ERROR(records.Open(PartsOfFile(expanded, file), &problems));
    if (!problems.empty()) return absl::InvalidArgumentError(Printable(problems.front()));
    MU_RETURN_IF_ERROR(ScanFile(expanded, &records, columns, parsed, &scanned));
    ++scanned.files;
  }
  return scanned;
}

}  // namespace mu
