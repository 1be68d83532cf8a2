#include "common/records/sparse_text.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/records/parse_number.h"
#include "common/records/record_parser.h"

namespace mu {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

}  // namespace

absl::string_view NextWord(absl::string_view* rest) {
  size_t begin = 0;
  while (begin < rest->size() && IsSpace((*rest)[begin])) ++begin;
  size_t end = begin;
  while (end < rest->size() && !IsSpace((*rest)[end]) && (*rest)[end] != kSparseSyntax.comment)
    ++end;
  const absl::string_view word = rest->substr(begin, end - begin);
  rest->remove_prefix(end);
  return word;
}

bool ParseIdAndValue(absl::string_view id_and_value, absl::string_view text,
                     absl::string_view column, int64_t bound, int64_t* id, float* value,
                     std::string* error) {
  const size_t colon = id_and_value.find(':');
  if (!absl::SimpleAtoi(id_and_value.substr(0, colon), id)) {
    return WrongField(column, text,
                      absl::StartsWith(text, "qid:")
                          ? "names a query, for which there is no column; remove it from the file"
                          : "has an id that is not an integer",
                      error);
  }
  if (*id < 0 || *id >= bound) {
    return WrongField(column, text,
                      absl::StrCat("has an id that is not from 0 to ", bound - 1,
                                   "; `features` must be above every id"),
                      error);
  }
  if (ParseNumber(id_and_value.substr(colon + 1), value)) return true;
  return WrongField(column, text, "has a value that is not a finite number", error);
}

SparseLabel::SparseLabel(const google::protobuf::RepeatedPtrField<std::string>& positive,
                         bool unlabelled)
    : positive_(positive.begin(), positive.end()),
      numbers_(absl::c_all_of(positive_,
                              [](const std::string& text) {
                                float number = 0;
                                return ParseNumber(text, &number);
                              })),
      unlabelled_(unlabelled) {}

bool SparseLabel::Parse(absl::string_view form, absl::string_view* rest, ColumnSet* columns,
                        std::string* error) const {
  absl::string_view behind = *rest;
  const absl::string_view label = NextWord(&behind);
  const bool is_there = !label.empty() && label.find(':') == absl::string_view::npos;
  if (unlabelled_) {
    if (is_there) *rest = behind;
    return true;
  }
  if (!is_there) {
    return WrongField("label", label.empty() ? *rest : label,
                      absl::StrCat("is no label; a line is ", form), error);
  }
  *rest = behind;
  if (columns->observer() != nullptr) columns->observer()->OnText(kColumn, label);
  if (!positive_.empty()) {
    float number = 0;
    if (numbers_ && !positive_.contains(label) && !ParseNumber(label, &number)) {
      return WrongField("label", label, "is neither a number nor one of `positive`", error);
    }
    *columns->Floats(kColumn) = positive_.contains(label) ? 1.0f : 0.0f;
    return true;
  }
  if (ParseNumber(label, columns->Floats(kColumn))) return true;
  return WrongField("label", label, "is not a finite number", error);
}

}  // namespace mu
