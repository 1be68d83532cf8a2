#include "common/records/record_parser.h"

#include "absl/strings/str_cat.h"
#include "common/records/criteo_parser.h"
#include "common/records/csv_parser.h"
#include "common/records/libsvm_parser.h"

namespace mu {

absl::Status CheckFormat(const pb::DatasetProto& dataset) {
  switch (dataset.format_case()) {
    case pb::DatasetProto::kCriteoTsv:
      if (dataset.criteo_tsv().hash_buckets() <= 0) {
        return absl::InvalidArgumentError(absl::StrCat("criteo_tsv: hash_buckets is ",
                                                       dataset.criteo_tsv().hash_buckets(),
                                                       ", but must be above 0"));
      }
      return absl::OkStatus();
    case pb::DatasetProto::kCsv:
      return CheckCsv(dataset.csv());
    case pb::DatasetProto::kLibsvm:
      if (dataset.libsvm().features() <= 0) {
        return absl::InvalidArgumentError(absl::StrCat(
            "libsvm: features is ", dataset.libsvm().features(), ", but must be above every id"));
      }
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          "the dataset has no format; give criteo_tsv, csv or libsvm");
  }
}

RecordSyntax SyntaxOf(const pb::DatasetProto& dataset) {
  return dataset.has_csv() ? CsvSyntax(dataset.csv()) : RecordSyntax();
}

std::vector<std::string> HeaderProblems(const pb::DatasetProto& dataset, absl::string_view header) {
  if (!dataset.has_csv() || !dataset.csv().header()) return {};
  return CsvHeaderProblems(dataset.csv(), header);
}

absl::StatusOr<std::unique_ptr<RecordParser>> MakeRecordParser(const pb::DatasetProto& dataset,
                                                               absl::string_view header) {
  if (dataset.has_csv()) return CsvParser::Create(dataset.csv(), header);
  if (dataset.has_libsvm()) return std::make_unique<LibsvmParser>(dataset.libsvm());
  return std::make_unique<CriteoParser>(dataset.criteo_tsv().hash_buckets());
}

}  // namespace mu
