// What a CsvProto may say.
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status.h"
#include "common/records/csv_parser.h"

namespace mu {
namespace {

absl::Status CheckColumn(const pb::CsvColumnProto& column, bool header) {
  const auto wrong = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("csv: column ", column.name(), ": ", problem));
  };
  if (column.name().empty()) return absl::InvalidArgumentError("csv: a column has no name");
  if (column.index() < -1) return wrong("index is negative");
  if (column.index() > 1'000'000) return wrong("index is above a million");
  if (column.index() == -1 && !header) {
    return wrong(
        "give its index, counted from 0, because the files have no header that could name it");
  }
  if (!column.field().empty() && !header) {
    return wrong("it names a field, but the files have no header; give its index instead");
  }
  switch (column.kind()) {
    case pb::CsvColumnProto::NUMBER:
      break;
    case pb::CsvColumnProto::ID:
      if (column.buckets() < 0) return wrong("buckets is negative");
      break;
    case pb::CsvColumnProto::HASH:
      if (column.buckets() <= 0) return wrong("a hashed column needs buckets above 0");
      break;
    case pb::CsvColumnProto::LABEL:
      if (column.positive().empty())
        return wrong("a label needs the texts that count as 1 in `positive`");
      break;
    default:
      return wrong("its kind is unknown");
  }
  if (!column.separator().empty() && column.kind() != pb::CsvColumnProto::ID &&
      column.kind() != pb::CsvColumnProto::HASH) {
    return wrong("only ids and hashed columns can be lists with a separator");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCsv(const pb::CsvProto& csv) {
  if (csv.columns().empty()) return absl::InvalidArgumentError("csv: no columns are named");
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
  absl::flat_hash_set<std::string> names;
  for (const pb::CsvColumnProto& column : csv.columns()) {
    MU_RETURN_IF_ERROR(CheckColumn(column, csv.header()));
    if (!names.insert(column.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("csv: two columns have the name ", column.name()));
    }
  }
  return absl::OkStatus();
}

}  // namespace mu
