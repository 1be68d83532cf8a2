#include "common/records/label_texts.h"

#include <algorithm>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/status.h"
#include "common/graph/dataset_schema.h"
#include "common/records/parse_number.h"

namespace mu {
namespace {

constexpr size_t kMostTexts = 8;

// What two texts for the same thing have in common.
std::string Essence(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  float number = 0;
  if (ParseNumber(text, &number)) return absl::StrCat(number);
  return absl::AsciiStrToLower(absl::StripSuffix(text, "."));
}

void Note(absl::string_view text, LabelTexts::Found* found) {
  const bool known =
      std::find(found->texts.begin(), found->texts.end(), text) != found->texts.end();
  if (!known && found->texts.size() < kMostTexts) found->texts.emplace_back(text);
}

// The first text that is a positive one in essence; null: there is none.
const std::string* NearlyPositive(const LabelTexts::Found& found) {
  std::set<std::string> positive;
  for (const std::string& text : found.positive) positive.insert(Essence(text));
  for (const std::string& text : found.texts) {
    if (positive.count(Essence(text)) != 0) return &text;
  }
  return nullptr;
}

}  // namespace

std::string QuotedTexts(const std::vector<std::string>& texts) {
  return absl::StrJoin(texts, ", ", [](std::string* out, const std::string& text) {
    absl::StrAppend(out, "\"", text, "\"");
  });
}

LabelTexts::LabelTexts(const pb::DatasetProto& dataset) {
  for (const TextLabel& label : TextLabelsOf(dataset)) {
    auto& [name, found] = by_column_[label.index];
    name = label.name;
    found.positive.assign(label.positive->begin(), label.positive->end());
  }
}

void LabelTexts::OnMissing(int column) {
  const auto label = by_column_.find(column);
  if (label != by_column_.end()) ++label->second.second.missing;
}

bool LabelTexts::AllHavePositives() const {
  return absl::c_all_of(by_column_,
                        [](const auto& label) { return label.second.second.positives > 0; });
}

void LabelTexts::OnText(int column, absl::string_view text) {
  const auto label = by_column_.find(column);
  if (label == by_column_.end()) return;
  Found& found = label->second.second;
  if (std::find(found.positive.begin(), found.positive.end(), text) != found.positive.end()) {
    ++found.positives;
    return;
  }
  ++found.others;
  Note(text, &found);
}

std::map<std::string, LabelTexts::Found> LabelTexts::found() const {
  std::map<std::string, Found> all;
  for (const auto& [column, label] : by_column_) all.insert(label);
  return all;
}

void Add(const std::map<std::string, LabelTexts::Found>& more,
         std::map<std::string, LabelTexts::Found>* all) {
  for (const auto& [name, found] : more) {
    LabelTexts::Found& sum = (*all)[name];
    sum.positive = found.positive;
    sum.positives += found.positives;
    sum.others += found.others;
    sum.missing += found.missing;
    for (const std::string& text : found.texts) Note(text, &sum);
  }
}

bool HasNoPositive(const LabelTexts::Found& found) {
  return found.positives == 0 && found.others + found.missing > 0;
}

std::string NoneIsPositive(const LabelTexts::Found& found) {
  if (found.others == 0) {
    return absl::StrCat("all of ", found.missing,
                        " labels are missing, which counts as 0; write required: true to have "
                        "such records refused, or name another field");
  }
  std::string remedy = "; name those that mean 1 in `positive`";
  if (const std::string* const near = NearlyPositive(found); near != nullptr) {
    remedy = absl::StripAsciiWhitespace(*near) == *near
                 ? absl::StrCat("; add \"", *near, "\" to `positive`")
                 : "; write trim: true, or the texts with their spaces";
  }
  return absl::StrCat("none of ", found.others, " labels is one of its `positive` texts, ",
                      QuotedTexts(found.positive), "; they are ", QuotedTexts(found.texts),
                      found.texts.size() == kMostTexts ? " and perhaps others" : "", remedy);
}

bool IsNearlyPositive(const LabelTexts::Found& found) {
  return found.positives == 0 && NearlyPositive(found) != nullptr;
}

}  // namespace mu
