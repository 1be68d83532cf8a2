#include "common/records/libsvm_parser.h"

#include "absl/strings/str_cat.h"

namespace mu {

LibsvmParser::LibsvmParser(const pb::LibsvmProto& libsvm)
    : features_(libsvm.features()), label_(libsvm.positive(), libsvm.unlabelled()) {}

bool LibsvmParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  absl::string_view rest = record;
  if (!label_.Parse("LABEL ID:VALUE ID:VALUE ...", &rest, columns, error)) return false;
  int64_t last_id = -1;
  for (absl::string_view word = NextWord(&rest); !word.empty(); word = NextWord(&rest)) {
    if (!ParseFeature(word, &last_id, columns, error)) return false;
  }
  return true;
}

bool LibsvmParser::ParseFeature(absl::string_view text, int64_t* last_id, ColumnSet* columns,
                                std::string* error) const {
  if (text.find(':') == absl::string_view::npos)
    return WrongField("features", text, "is not ID:VALUE", error);
  int64_t id = 0;
  float value = 0;
  if (!ParseIdAndValue(text, text, "features", features_, &id, &value, error)) return false;
  if (id <= *last_id)
    return WrongField("features", text, absl::StrCat("follows id ", *last_id, "; ids must grow"),
                      error);
  *last_id = id;
  columns->Append(label_.columns(), id, value);
  return true;
}

}  // namespace mu
