#include "common/records/csv_parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"
#include "common/records/parse_number.h"

namespace mu {
namespace {

// The text of a field; `scratch` holds it where doubled quotes had to be undone.
absl::string_view TextOf(const RecordSyntax& syntax, const FieldBounds& field,
                         std::string* scratch) {
  if (!field.escaped) return field.text;
  const std::string one(1, syntax.quote);
  *scratch = absl::StrReplaceAll(field.text, {{one + one, one}});
  return *scratch;
}

std::vector<std::string> HeaderNames(const RecordSyntax& syntax, absl::string_view header) {
  std::vector<std::string> names;
  const char* p = header.data();
  while (p != nullptr) {
    const FieldBounds field = FindField(syntax, p, header.data() + header.size());
    std::string scratch;
    names.emplace_back(absl::StripAsciiWhitespace(TextOf(syntax, field, &scratch)));
    p = field.next;
  }
  return names;
}

// What to do about a name that the header lacks.
std::string HeaderRemedy(const std::string& wanted, const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  const std::string nearest = DidYouMean(wanted, names);
  if (!nearest.empty()) return nearest;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(names.size(), kShown));
  return absl::StrCat("; it names ", absl::StrJoin(shown, ", "),
                      names.size() > kShown ? ", ..." : "");
}

// The field that a column is read from. INVALID_ARGUMENT: the header does not tell.
absl::StatusOr<size_t> FieldOf(const pb::CsvColumnProto& column, bool header,
                               const std::vector<std::string>& names) {
  if (column.index() >= 0 && column.field().empty()) {
    const auto index = static_cast<size_t>(column.index());
    if (!header || index < names.size()) return index;
    return absl::InvalidArgumentError(absl::StrCat("column ", column.name(), " has index ", index,
                                                   ", but the header names ", names.size(),
                                                   " columns"));
  }
  const std::string& wanted = column.field().empty() ? column.name() : column.field();
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header has no column \"", wanted, "\"", HeaderRemedy(wanted, names)));
  }
  if (std::find(found + 1, names.end(), wanted) != names.end()) {
    return absl::InvalidArgumentError(absl::StrCat("the header has several columns \"", wanted,
                                                   "\"; name the column by its index"));
  }
  return static_cast<size_t>(found - names.begin());
}

// What a header is that has none of the wanted columns because it is read wrongly: cut at another
// character than the file's, or a record. Empty: neither.
std::string HeaderMisread(const RecordSyntax& syntax, absl::string_view header,
                          const std::vector<std::string>& names) {
  if (names.size() == 1) {
    for (const auto& [other, written] :
         {std::pair(',', ","), std::pair(';', ";"), std::pair('\t', "\\t"), std::pair('|', "|")}) {
      const auto count = std::count(header.begin(), header.end(), other);
      if (other == syntax.delimiter || count == 0) continue;
      const std::string own = syntax.delimiter == '\t' ? "\\t" : std::string(1, syntax.delimiter);
      return absl::StrCat("it has no \"", own, "\", but \"", written, "\" ", count,
                          count == 1 ? " time" : " times", ": write delimiter: \"", written, "\"");
    }
  }
  float number = 0;
  const auto numeric = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
    return ParseNumber(name, &number);
  });
  if (numeric == names.end()) return "";
  return absl::StrCat("it holds ", *numeric,
                      ": if this line is a record, write header: false, and each column's index, "
                      "counted from 0");
}

}  // namespace

RecordSyntax CsvSyntax(const pb::CsvProto& csv) {
  return {.delimiter = csv.delimiter().empty() ? ',' : csv.delimiter()[0],
          .quote = !csv.has_quote()      ? '"'
                   : csv.quote().empty() ? '\0'
                                         : csv.quote()[0],
          .trim = csv.trim(),
          .header = csv.header(),
          .skip_lines = csv.skip_lines()};
}

CsvParser::CsvParser(const pb::CsvProto& csv, std::shared_ptr<const FieldColumns> columns)
    : syntax_(CsvSyntax(csv)),
      columns_(std::move(columns)),
      missing_(csv.missing().begin(), csv.missing().end()) {}

std::vector<std::string> CsvHeaderProblems(const pb::CsvProto& csv, absl::string_view header) {
  std::vector<std::string> problems, unknown;
  bool some = false;
  const std::vector<std::string> names = HeaderNames(CsvSyntax(csv), header);
  for (const pb::CsvColumnProto& column : csv.columns()) {
    if (column.kind() == pb::CsvColumnProto::CROSS) continue;
    if (column.kind() == pb::CsvColumnProto::TEXT) continue;  // of a field that another reads, too
    const absl::Status status = FieldOf(column, csv.header(), names).status();
    some = some || status.ok();
    if (status.ok()) continue;
    problems.emplace_back(status.message());
    unknown.push_back(
        absl::StrCat("\"", column.field().empty() ? column.name() : column.field(), "\""));
  }
  if (some || unknown.empty() || !csv.header()) return problems;
  const std::string misread = HeaderMisread(CsvSyntax(csv), header, names);
  if (misread.empty()) return problems;
  return {absl::StrCat("the header has no column ", absl::StrJoin(unknown, ", "), "; ", misread)};
}

absl::StatusOr<std::unique_ptr<RecordParser>> CsvParser::Create(
    const pb::CsvProto& csv, std::shared_ptr<const FieldColumns> columns,
    absl::string_view header) {
  std::unique_ptr<CsvParser> parser(new CsvParser(csv, std::move(columns)));
  std::vector<std::string> names;
  if (csv.header()) {
    names = HeaderNames(parser->syntax_, header);
    parser->header_fields_ = names.size();
  }
  for (int i = 0; i < csv.columns_size(); ++i) {
    if (parser->columns_->is_cross(i)) continue;
    MU_ASSIGN_OR_RETURN(const size_t field, FieldOf(csv.columns(i), csv.header(), names));
    if (field >= parser->by_field_.size()) parser->by_field_.resize(field + 1);
    parser->by_field_[field].push_back(i);
  }
  parser->needed_fields_ = parser->by_field_.size();
  return parser;
}

bool CsvParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  static thread_local std::string scratch;
  FieldRow row(*columns_, columns, error);
  const char* p = record.data();
  size_t fields = 0;
  // Behind the last needed field only the number of fields matters, and only where a header gives
  // it.
  while (p != nullptr && (fields < needed_fields_ || header_fields_ > 0)) {
    const FieldBounds field = FindField(syntax_, p, record.data() + record.size());
    p = field.next;
    const size_t index = fields++;
    if (field.malformed) {
      *error = absl::StrCat("field ", index, ": a quote is not closed, or text follows it");
      return false;
    }
    if (index >= by_field_.size() || by_field_[index].empty()) continue;
    const absl::string_view text = TextOf(syntax_, field, &scratch);
    const bool missing = text.empty() || missing_.contains(text);
    for (int column : by_field_[index]) {
      if (!Store(column, text, missing, &row, error)) return false;
    }
  }
  if (header_fields_ > 0 && fields != header_fields_) {
    *error =
        absl::StrCat("the record has ", fields, " fields, but the header names ", header_fields_);
    return false;
  }
  if (fields < needed_fields_) {
    size_t field = fields;
    while (by_field_[field].empty()) ++field;
    *error = absl::StrCat("column ", columns_->column(by_field_[field][0]).name(),
                          ": is not there; the record has ", fields,
                          " fields, this would be number ", field + 1);
    return false;
  }
  return row.Finish();
}

bool CsvParser::Store(int column, absl::string_view text, bool missing, FieldRow* row,
                      std::string* error) const {
  if (missing && !columns_->is_text(column)) return row->Missing(column);
  return columns_->has_several(column) ? StoreSeveral(column, text, row, error)
                                       : row->Set(column, text);
}

bool CsvParser::StoreSeveral(int column, absl::string_view text, FieldRow* row,
                             std::string* error) const {
  const pb::CsvColumnProto& proto = columns_->column(column).proto();
  row->Begin(column);
  for (absl::string_view item : absl::StrSplit(text, proto.separator())) {
    if (syntax_.trim) item = absl::StripAsciiWhitespace(item);
    float weight = 1.0f;
    if (!item.empty() && !proto.weight_separator().empty()) {
      const size_t at = item.rfind(proto.weight_separator()[0]);
      if (at == absl::string_view::npos || !ParseNumber(item.substr(at + 1), &weight)) {
        return WrongField(
            proto.name(), item,
            absl::StrCat("is not a value, \"", proto.weight_separator(), "\" and a finite weight"),
            error);
      }
      item = item.substr(0, at);
    }
    if (!(item.empty() ? row->AddMissing(column) : row->Add(column, item, weight))) return false;
  }
  return row->End(column);
}

}  // namespace mu
