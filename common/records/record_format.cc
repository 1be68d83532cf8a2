#include "common/records/record_format.h"

#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/graph/limits.h"
#include "common/records/array_format.h"
#include "common/records/criteo_parser.h"
#include "common/records/csv_parser.h"
#include "common/records/jsonl_parser.h"
#include "common/records/libffm_parser.h"
#include "common/records/libsvm_parser.h"
#include "common/records/sparse_text.h"
#include "common/records/text_format.h"
#include "common/records/tfrecord_format.h"

namespace mu {
namespace {

using ParserOr = absl::StatusOr<std::unique_ptr<RecordParser>>;
using FormatOr = absl::StatusOr<std::shared_ptr<const RecordFormat>>;

FormatOr MakeCriteo(const pb::CriteoTsvProto& criteo) {
  return std::make_shared<TextFormat>(RecordSyntax(), [criteo](absl::string_view) -> ParserOr {
    return std::make_unique<CriteoParser>(criteo.hash_buckets(), !criteo.unlabelled());
  });
}

FormatOr MakeCsv(const pb::CsvProto& csv) {
  MU_ASSIGN_OR_RETURN(const std::shared_ptr<const FieldColumns> columns,
                      FieldColumns::Create(csv.columns()));
  return std::make_shared<TextFormat>(
      CsvSyntax(csv),
      [csv, columns](absl::string_view header) { return CsvParser::Create(csv, columns, header); },
      [csv](absl::string_view header) { return CsvHeaderProblems(csv, header); });
}

FormatOr MakeLibsvm(const pb::LibsvmProto& libsvm) {
  return std::make_shared<TextFormat>(kSparseSyntax, [libsvm](absl::string_view) -> ParserOr {
    return std::make_unique<LibsvmParser>(libsvm);
  });
}

FormatOr MakeLibffm(const pb::LibffmProto& libffm) {
  return std::make_shared<TextFormat>(kSparseSyntax, [libffm](absl::string_view) -> ParserOr {
    return std::make_unique<LibffmParser>(libffm);
  });
}

absl::Status CheckLibffm(const pb::LibffmProto& libffm) {
  if (libffm.features() <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("libffm: features is ", libffm.features(), ", but must be above every id"));
  }
  if (libffm.fields() > 0 && libffm.fields() <= kMostLibffmFields) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("libffm: fields is ", libffm.fields(),
                                                 ", but must be above every field, and at most ",
                                                 kMostLibffmFields));
}

FormatOr MakeJsonl(const pb::JsonlProto& jsonl) {
  MU_ASSIGN_OR_RETURN(const std::shared_ptr<const FieldColumns> columns,
                      FieldColumns::Create(jsonl.columns()));
  return std::make_shared<TextFormat>(RecordSyntax(),
                                      [jsonl, columns](absl::string_view) -> ParserOr {
                                        return std::make_unique<JsonlParser>(jsonl, columns);
                                      });
}

FormatOr MakeTfrecord(const pb::TfrecordProto& tfrecord) {
  MU_ASSIGN_OR_RETURN(const std::shared_ptr<const FieldColumns> columns,
                      FieldColumns::Create(tfrecord.columns()));
  return std::make_shared<TfrecordFormat>(columns);
}

absl::Status CheckOneFormat(const pb::DatasetProto& dataset) {
  switch (dataset.format_case()) {
    case pb::DatasetProto::kCriteoTsv:
      if (dataset.criteo_tsv().hash_buckets() > 0) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat("criteo_tsv: hash_buckets is ",
                                                     dataset.criteo_tsv().hash_buckets(),
                                                     ", but must be above 0"));
    case pb::DatasetProto::kCsv:
      return CheckCsv(dataset.csv());
    case pb::DatasetProto::kLibsvm:
      if (dataset.libsvm().features() > 0) return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(
          "libsvm: features is ", dataset.libsvm().features(), ", but must be above every id"));
    case pb::DatasetProto::kLibffm:
      return CheckLibffm(dataset.libffm());
    case pb::DatasetProto::kArrays:
      return CheckArrays(dataset.arrays());
    case pb::DatasetProto::kJsonl:
      return Annotate(CheckFieldColumns(dataset.jsonl().columns(), FieldSyntax::kTyped), "jsonl");
    case pb::DatasetProto::kTfrecord:
      return Annotate(CheckFieldColumns(dataset.tfrecord().columns(), FieldSyntax::kTyped),
                      "tfrecord");
    default:
      return absl::InvalidArgumentError(
          "the dataset has no format; give criteo_tsv, csv, libsvm, libffm, jsonl, tfrecord or "
          "arrays");
  }
}

}  // namespace

std::vector<std::string> RecordFormat::HeadProblems(int part, absl::string_view head) const {
  const absl::StatusOr<FileFormat> opened = Open(part, head);
  if (opened.ok()) return {};
  return {std::string(opened.status().message())};
}

FormatOr MakeRecordFormat(const pb::DatasetProto& dataset) {
  MU_RETURN_IF_ERROR(CheckFormat(dataset));
  switch (dataset.format_case()) {
    case pb::DatasetProto::kCriteoTsv:
      return MakeCriteo(dataset.criteo_tsv());
    case pb::DatasetProto::kCsv:
      return MakeCsv(dataset.csv());
    case pb::DatasetProto::kLibsvm:
      return MakeLibsvm(dataset.libsvm());
    case pb::DatasetProto::kLibffm:
      return MakeLibffm(dataset.libffm());
    case pb::DatasetProto::kJsonl:
      return MakeJsonl(dataset.jsonl());
    case pb::DatasetProto::kTfrecord:
      return MakeTfrecord(dataset.tfrecord());
    default:
      return std::make_shared<ArrayFormat>(dataset.arrays());
  }
}

absl::Status CheckFormat(const pb::DatasetProto& dataset) {
  MU_RETURN_IF_ERROR(CheckOneFormat(dataset));
  const int companions = dataset.has_arrays() ? dataset.arrays().columns_size() - 1 : 0;
  if (dataset.companions_size() == companions) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the format reads ", companions + 1, " files together, but the dataset names ",
                   dataset.companions_size(), " lists of files beside the first"));
}

}  // namespace mu
