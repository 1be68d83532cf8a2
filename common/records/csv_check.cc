// What a CsvProto may say.
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/records/csv_parser.h"
#include "common/records/field_columns.h"

namespace mu {
namespace {

// Where the column's field is.
absl::Status CheckPlace(const pb::CsvColumnProto& column, bool header) {
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("csv: column ", column.name(), ": ", problem));
  };
  if (column.index() < -1) return wrong("index is negative");
  if (column.index() > 1'000'000) return wrong("index is above a million");
  if (column.kind() == pb::CsvColumnProto::CROSS) return absl::OkStatus();
  if (column.index() == -1 && !header) {
    return wrong(
        "give its index, counted from 0, because the files have no header that could name it");
  }
  if (!column.field().empty() && !header)
    return wrong("it names a field, but the files have no header; give its index instead");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCsv(const pb::CsvProto& csv) {
  if (csv.delimiter().size() > 1)
    return absl::InvalidArgumentError("csv: delimiter must be one character");
  if (csv.quote().size() > 1)
    return absl::InvalidArgumentError("csv: quote must be one character, or empty");
  const RecordSyntax syntax = CsvSyntax(csv);
  for (char c : {'\n', '\r', '\0'}) {
    if (syntax.delimiter == c || (c != '\0' && syntax.quote == c)) {
      return absl::InvalidArgumentError("csv: a line end cannot be a delimiter or quote");
    }
  }
  if (syntax.delimiter == syntax.quote) {
    return absl::InvalidArgumentError("csv: delimiter and quote are the same character");
  }
  MU_RETURN_IF_ERROR(Annotate(CheckFieldColumns(csv.columns(), FieldSyntax::kText), "csv"));
  for (const pb::CsvColumnProto& column : csv.columns())
    MU_RETURN_IF_ERROR(CheckPlace(column, csv.header()));
  return absl::OkStatus();
}

}  // namespace mu
