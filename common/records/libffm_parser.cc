#include "common/records/libffm_parser.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/graph/dataset_schema.h"

namespace mu {

LibffmParser::LibffmParser(const pb::LibffmProto& libffm)
    : features_(libffm.features()), label_(libffm.positive(), libffm.unlabelled()) {
  for (int64_t field = 0; field < libffm.fields(); ++field) names_.push_back(LibffmColumnOf(field));
}

bool LibffmParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  absl::string_view rest = record;
  if (!label_.Parse("LABEL FIELD:ID:VALUE FIELD:ID:VALUE ...", &rest, columns, error)) return false;
  for (absl::string_view word = NextWord(&rest); !word.empty(); word = NextWord(&rest)) {
    if (!ParseFeature(word, columns, error)) return false;
  }
  return true;
}

bool LibffmParser::ParseFeature(absl::string_view text, ColumnSet* columns,
                                std::string* error) const {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || text.find(':', colon + 1) == absl::string_view::npos)
    return WrongField("fields", text, "is not FIELD:ID:VALUE", error);
  int64_t field = 0;
  if (!absl::SimpleAtoi(text.substr(0, colon), &field))
    return WrongField("fields", text, "has a field that is not an integer", error);
  if (field < 0 || field >= static_cast<int64_t>(names_.size())) {
    return WrongField(
        "fields", text,
        absl::StrCat("has a field that is not from 0 to ", static_cast<int64_t>(names_.size()) - 1,
                     "; `fields` must be above every field"),
        error);
  }
  const std::string& name = names_[static_cast<size_t>(field)];
  int64_t id = 0;
  float value = 0;
  if (!ParseIdAndValue(text.substr(colon + 1), text, name, features_, &id, &value, error))
    return false;
  columns->Append(label_.columns() + static_cast<int>(field), id, value);
  return true;
}

}  // namespace mu
