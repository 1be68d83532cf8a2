#include "common/records/libsvm_parser.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/records/parse_number.h"

namespace mu {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// The next text between spaces, taken off `rest`; empty at the end or where a comment begins.
absl::string_view NextWord(absl::string_view* rest) {
  size_t begin = 0;
  while (begin < rest->size() && IsSpace((*rest)[begin])) ++begin;
  size_t end = begin;
  while (end < rest->size() && !IsSpace((*rest)[end]) && (*rest)[end] != '#') ++end;
  const absl::string_view word = rest->substr(begin, end - begin);
  rest->remove_prefix(end);
  return word;
}

}  // namespace

LibsvmParser::LibsvmParser(const pb::LibsvmProto& libsvm)
    : features_(libsvm.features()), positive_(libsvm.positive().begin(), libsvm.positive().end()) {}

bool LibsvmParser::Parse(absl::string_view record, ColumnSet* columns, std::string* error) const {
  absl::string_view rest = record;
  const absl::string_view label = NextWord(&rest);
  if (label.empty() || label.find(':') != absl::string_view::npos) {
    return WrongField("label", label.empty() ? record : label,
                      "is no label; a line is LABEL ID:VALUE ID:VALUE ...", error);
  }
  if (columns->observer() != nullptr) columns->observer()->OnText(kLabel, label);
  if (!positive_.empty()) {
    *columns->Floats(kLabel) = positive_.contains(label) ? 1.0f : 0.0f;
  } else if (!ParseNumber(label, columns->Floats(kLabel))) {
    return WrongField("label", label, "is not a finite number", error);
  }
  int64_t last_id = -1;
  for (absl::string_view word = NextWord(&rest); !word.empty(); word = NextWord(&rest)) {
    if (!ParseFeature(word, &last_id, columns, error)) return false;
  }
  return true;
}

bool LibsvmParser::ParseFeature(absl::string_view text, int64_t* last_id, ColumnSet* columns,
                                std::string* error) const {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos)
    return WrongField("features", text, "is not ID:VALUE", error);
  int64_t id = 0;
  if (!absl::SimpleAtoi(text.substr(0, colon), &id)) {
    return WrongField("features", text,
                      absl::StartsWith(text, "qid:")
                          ? "names a query, for which there is no column; remove it from the file"
                          : "has an id that is not an integer",
                      error);
  }
  if (id < 0 || id >= features_) {
    return WrongField("features", text,
                      absl::StrCat("has an id that is not from 0 to ", features_ - 1,
                                   "; `features` must be above every id"),
                      error);
  }
  if (id <= *last_id)
    return WrongField("features", text, absl::StrCat("follows id ", *last_id, "; ids must grow"),
                      error);
  *last_id = id;
  float value = 0;
  if (!ParseNumber(text.substr(colon + 1), &value))
    return WrongField("features", text, "has a value that is not a finite number", error);
  columns->Append(kFeatures, id, value);
  return true;
}

}  // namespace mu
