#include "common/records/jsonl_parser.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/records/parse_number.h"

namespace mu {
namespace {

using Column = pb::CsvColumnProto;

// A column that counts or compares, for which true is 1.
bool WantsNumber(const Column& column) {
  return column.kind() == Column::NUMBER || column.kind() == Column::BUCKET;
}

}  // namespace

JsonlParser::JsonlParser(const pb::JsonlProto& jsonl, std::shared_ptr<const FieldColumns> columns)
    : columns_(std::move(columns)),
      slots_(*columns_),
      missing_(jsonl.missing().begin(), jsonl.missing().end()) {}

bool JsonlParser::Locate(absl::string_view record, Values* values, std::string* error) const {
  static thread_local std::string scratch;
  values->assign(static_cast<size_t>(slots_.size()), JsonValue());
  JsonScanner scanner(record);
  JsonValue key, skipped;
  bool more = true;
  bool good = scanner.Open('{');
  while (good && (good = scanner.NextKey(&key, &more)) && more) {
    absl::string_view name;
    if (!UnescapeJson(key, &scratch, &name)) {
      *error = absl::StrCat("the key \"", key.text.substr(0, kShownText), "\" has a bad escape");
      return false;
    }
    const int slot = slots_.Find(name);
    if (slot < 0) {
      good = scanner.Value(&skipped);
      continue;
    }
    JsonValue& value = (*values)[static_cast<size_t>(slot)];
    if (value.type != JsonValue::kAbsent) {
      *error = absl::StrCat("the key \"", name, "\" stands there twice");
      return false;
    }
    good = scanner.Value(&value);
  }
  if (good && scanner.End()) return true;
  *error = scanner.problem();
  // What other programs call JSON.
  const absl::string_view text = absl::StripAsciiWhitespace(record);
  if (absl::StartsWith(text, "[")) {
    absl::StrAppend(error, "; a line is one object, not an array: jq -c '.[]' FILE makes lines");
  } else if (text == "{") {
    absl::StrAppend(error, "; an object stands in one line: jq -c . FILE makes lines");
  }
  return false;
}

bool JsonlParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  static thread_local Values values;
  if (!Locate(record, &values, error)) return false;
  FieldRow row(*columns_, columns, error);
  for (int column = 0; column < columns_->size(); ++column) {
    if (!columns_->is_cross(column) && !Store(column, values, &row, error)) return false;
  }
  return row.Finish();
}

bool JsonlParser::TextOf(int column, const JsonValue& value, absl::string_view* text, bool* missing,
                         std::string* error) const {
  static thread_local std::string scratch;
  const Column& proto = columns_->column(column).proto();
  *text = value.text;
  *missing = false;
  switch (value.type) {
    case JsonValue::kAbsent:
    case JsonValue::kNull:
      *missing = true;
      return true;
    case JsonValue::kTrue:
    case JsonValue::kFalse:
      if (WantsNumber(proto)) *text = value.type == JsonValue::kTrue ? "1" : "0";
      return true;
    case JsonValue::kNumber:
      break;
    case JsonValue::kString:
      if (!UnescapeJson(value, &scratch, text))
        return WrongField(proto.name(), value.text, "has a bad escape", error);
      break;
    case JsonValue::kArray:
      return WrongField(proto.name(), value.text,
                        "is an array; write list: true for a field of several values", error);
    case JsonValue::kObject:
      return WrongField(proto.name(), value.text, "is an object, which no column can hold", error);
  }
  *missing = text->empty() || missing_.contains(*text);
  return true;
}

bool JsonlParser::Store(int column, const Values& values, FieldRow* row, std::string* error) const {
  static const JsonValue none;
  const JsonValue& value = values[static_cast<size_t>(slots_.of(column))];
  if (columns_->has_several(column) && value.type == JsonValue::kArray) {
    const int weights = slots_.weights_of(column);
    return StoreSeveral(column, value, weights < 0 ? none : values[static_cast<size_t>(weights)],
                        row, error);
  }
  absl::string_view text;
  bool missing = false;
  if (!TextOf(column, value, &text, &missing, error)) return false;
  // A text stays as it is, even if it is a mark.
  const bool is_null = value.type == JsonValue::kNull || value.type == JsonValue::kAbsent;
  if (missing && (is_null || !columns_->is_text(column))) return row->Missing(column);
  if (!columns_->has_several(column)) return row->Set(column, text);
  return WrongField(columns_->column(column).name(), text, "is no array, but list: true says so",
                    error);
}

bool JsonlParser::StoreSeveral(int column, const JsonValue& array, const JsonValue& weights,
                               FieldRow* row, std::string* error) const {
  const Column& proto = columns_->column(column).proto();
  const bool weighted = !proto.weight_field().empty();
  const auto mismatch = [&] {
    *error = absl::StrCat("column ", proto.name(), ": \"", proto.weight_field(),
                          "\" must be an array of as many numbers as there are values");
    return false;
  };
  // Both arrays were checked when they were located: only what is in them can be wrong.
  JsonScanner items(array.text), of_weights(weights.text);
  if (!items.Open('[') || (weighted && !of_weights.Open('['))) return mismatch();
  row->Begin(column);
  JsonValue item, weight_value;
  while (true) {
    bool more = false, more_weights = false;
    if (!items.NextElement(&more)) return false;
    if (weighted && (!of_weights.NextElement(&more_weights) || more != more_weights))
      return mismatch();
    if (!more) break;
    float weight = 1.0f;
    if (!items.Value(&item)) return false;
    if (weighted && (!of_weights.Value(&weight_value) || weight_value.type != JsonValue::kNumber ||
                     !ParseNumber(weight_value.text, &weight)))
      return mismatch();
    absl::string_view text;
    bool missing = false;
    if (!TextOf(column, item, &text, &missing, error)) return false;
    if (!(missing ? row->AddMissing(column) : row->Add(column, text, weight))) return false;
  }
  return row->End(column);
}

}  // namespace mu
