#include "common/records/csv_parser.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/base/status.h"
#include "common/graph/nearest_name.h"
#include "common/records/parse_number.h"

namespace mu {
namespace {

constexpr size_t kShownText = 40;  // of a bad field, in messages

bool IsList(const pb::CsvColumnProto& column) {
  return !column.separator().empty() &&
         (column.kind() == pb::CsvColumnProto::ID || column.kind() == pb::CsvColumnProto::HASH);
}

bool Wrong(absl::string_view column, absl::string_view text, absl::string_view problem,
           std::string* error) {
  *error = absl::StrCat("column ", column, ": \"", text.substr(0, kShownText), "\" ", problem);
  return false;
}

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

}  // namespace

RecordSyntax CsvSyntax(const pb::CsvProto& csv) {
  return {.delimiter = csv.delimiter().empty() ? ',' : csv.delimiter()[0],
          .quote = !csv.has_quote()      ? '"'
                   : csv.quote().empty() ? '\0'
                                         : csv.quote()[0],
          .trim = csv.trim(),
          .header = csv.header()};
}

CsvParser::CsvParser(const pb::CsvProto& csv)
    : syntax_(CsvSyntax(csv)), missing_(csv.missing().begin(), csv.missing().end()) {
  for (const pb::CsvColumnProto& proto : csv.columns()) {
    Column& column = columns_.emplace_back();
    column.proto = proto;
    column.positive.insert(proto.positive().begin(), proto.positive().end());
    if (proto.kind() == pb::CsvColumnProto::HASH) {
      column.hash = std::make_unique<BucketHash>(HashString(proto.name()),
                                                 static_cast<uint64_t>(proto.buckets()));
    }
  }
}

std::vector<std::string> CsvHeaderProblems(const pb::CsvProto& csv, absl::string_view header) {
  std::vector<std::string> problems;
  const std::vector<std::string> names = HeaderNames(CsvSyntax(csv), header);
  for (const pb::CsvColumnProto& column : csv.columns()) {
    const absl::Status status = FieldOf(column, csv.header(), names).status();
    if (!status.ok()) problems.emplace_back(status.message());
  }
  return problems;
}

absl::StatusOr<std::unique_ptr<RecordParser>> CsvParser::Create(const pb::CsvProto& csv,
                                                                absl::string_view header) {
  std::unique_ptr<CsvParser> parser(new CsvParser(csv));
  std::vector<std::string> names;
  if (csv.header()) {
    names = HeaderNames(parser->syntax_, header);
    parser->header_fields_ = names.size();
  }
  for (int i = 0; i < csv.columns_size(); ++i) {
    MU_ASSIGN_OR_RETURN(const size_t field, FieldOf(csv.columns(i), csv.header(), names));
    if (field >= parser->by_field_.size()) parser->by_field_.resize(field + 1);
    parser->by_field_[field].push_back(i);
  }
  parser->needed_fields_ = parser->by_field_.size();
  return parser;
}

bool CsvParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  static thread_local std::string scratch;
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
      if (!Store(column, text, missing, columns, error)) return false;
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
    *error = absl::StrCat("column ", columns_[by_field_[field][0]].proto.name(),
                          ": is not there; the record has ", fields,
                          " fields, this would be number ", field + 1);
    return false;
  }
  return true;
}

bool CsvParser::Store(int index, absl::string_view text, bool missing, ColumnSet* columns,
                      std::string* error) const {
  const pb::CsvColumnProto& proto = columns_[index].proto;
  if (!missing) {
    return IsList(proto) ? StoreList(index, text, columns, error)
                         : StoreItem(index, text, columns, error);
  }
  if (proto.required()) return Wrong(proto.name(), text, "is missing, but required", error);
  if (IsList(proto)) return true;
  switch (proto.kind()) {
    case pb::CsvColumnProto::NUMBER:
      *columns->Floats(index) = proto.missing_value();
      return true;
    case pb::CsvColumnProto::LABEL:
      *columns->Floats(index) = 0.0f;
      return true;
    case pb::CsvColumnProto::HASH:
      *columns->Ints(index) = columns_[index].hash->OfMissing();
      return true;
    default:
      return Wrong(proto.name(), text, "is missing, and nothing stands for a missing id", error);
  }
}

bool CsvParser::StoreItem(int index, absl::string_view text, ColumnSet* columns,
                          std::string* error) const {
  const Column& column = columns_[index];
  const pb::CsvColumnProto& proto = column.proto;
  int64_t id = 0;
  switch (proto.kind()) {
    case pb::CsvColumnProto::NUMBER:
      if (!ParseNumber(text, columns->Floats(index))) {
        return Wrong(proto.name(), text, "is not a finite number", error);
      }
      return true;
    case pb::CsvColumnProto::LABEL:
      *columns->Floats(index) = column.positive.contains(text) ? 1.0f : 0.0f;
      return true;
    case pb::CsvColumnProto::HASH:
      id = column.hash->OfText(text);
      break;
    default:
      if (!absl::SimpleAtoi(text, &id))
        return Wrong(proto.name(), text, "is not an integer", error);
      if (id < 0) return Wrong(proto.name(), text, "is negative, but ids begin at 0", error);
      if (proto.buckets() > 0 && id >= proto.buckets()) {
        return Wrong(proto.name(), text,
                     absl::StrCat("is not below ", proto.buckets(),
                                  ", the bound of its ids (the column's `buckets`, or the rows of "
                                  "the model's table)"),
                     error);
      }
  }
  if (IsList(proto)) {
    columns->Append(index, id);
  } else {
    *columns->Ints(index) = id;
  }
  return true;
}

bool CsvParser::StoreList(int index, absl::string_view text, ColumnSet* columns,
                          std::string* error) const {
  for (absl::string_view item : absl::StrSplit(text, columns_[index].proto.separator())) {
    if (syntax_.trim) item = absl::StripAsciiWhitespace(item);
    if (!item.empty() && !StoreItem(index, item, columns, error)) return false;
  }
  return true;
}

}  // namespace mu
